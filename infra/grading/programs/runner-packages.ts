import { patchParts } from '../patch/patch-parts.ts';
import { escapePattern } from '../protection/patterns.ts';
import { type BasePrograms, isTrackedFile } from './base-programs.ts';

const python = String.raw`_?pytest|pytest_\w+|pluggy|iniconfig|xdist|nose2?`;
const node = String.raw`jest|jest-[\w-]+|babel-jest|expect|expect-utils|@jest/[\w-]+|vitest|vite-node|@vitest/[\w-]+|mocha|chai|ava|tap|@tapjs/[\w-]+`;
/**
 * A file of a test runner's package where packages are installed: of the one that people name, of those that it is made of, and of
 * its plugins. Restored in part, a runner of two versions would not start.
 */
const ofRunner = new RegExp(`(?:^|/)(?:(?:site|dist)-packages/(?:${python})|node_modules/(?:${node}))/`);

/**
 * Returns the patterns of those files of installed runners that a patch changes or deletes. They are the task's, unless its own
 * repository tracks them. An installation of another version is no solution, but changes of other packages may be one.
 */
export function runnerPackages(base: BasePrograms | null, patch: Uint8Array): readonly string[] {
  if (base === null) return [];
  const isTasks = (name: string): boolean => base.hasRepository && isTrackedFile(base, `${base.workdir}/${name}`);
  return patchParts(patch)
    .filter(({ change }) => change !== 'added')
    .flatMap(({ names }) => names)
    .filter((name) => ofRunner.test(name) && !isTasks(name))
    .map((name) => escapePattern(Buffer.from(name, 'latin1').toString('utf8')));
}
