import type { Flag, Trick } from '../../../workflows/contracts/flags.ts';
import { escapes } from '../patch/patch-links.ts';
import { headerOf, type PatchPart } from '../patch/patch-parts.ts';
import { matcher, matcherAbove } from '../protection/patterns.ts';
import { type Protection, protectedPatterns, testConfiguration } from '../protection/rules.ts';

/** Files that replace a test runner, or a module that it loads, where the workspace comes first in the search path. */
const isRunner = matcher(
  words(`
    pytest _pytest pluggy iniconfig unittest doctest nose nose2
    argparse ast contextlib difflib enum functools importlib inspect io json logging os pathlib pprint re shutil signal
    tempfile time traceback types typing warnings weakref
  `).flatMap((name) => [`/${name}.py`, `/${name}.pyc`, `/${name}/__init__.*`]),
);

/** Files of installed test runners, and programs that packages install. */
const isInstalledRunner = matcher([
  ...words('jest vitest mocha chai ava tap').map((name) => `node_modules/${name}/`),
  'node_modules/.bin/',
  'vendor/bin/',
]);

/** Programs that the scripts of tests call by name. */
const programs = new Set(
  words(`
    sh bash env timeout git make cat grep test
    python python3 pytest pip node npm npx yarn pnpm jest vitest mocha
    go cargo rustc java mvn gradle php phpunit ruby bats
  `),
);

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Whether Python runs this file whenever it starts. The path has no leading `/`. */
export const isHook = matcher(['sitecustomize.py', 'usercustomize.py', '*.pth']);
const isPlugin = matcher(['*.egg-info/', '*.dist-info/']);
const isConfiguration = matcher(testConfiguration);
const isGit = matcher(['.git']);

/** Whether a file has the name of a program that the scripts of tests call. */
export const isProgramName = (path: string): boolean => programs.has(path.slice(path.lastIndexOf('/') + 1));

/** Flags suspicious names of the files that a patch changes. */
export function* flagChangedPaths(parts: readonly PatchPart[], protection: Protection): Generator<Flag> {
  const patterns = protectedPatterns(protection);
  const isProtected = matcher(patterns);
  const isAbove = matcherAbove(patterns);
  const leadsThere = (name: string): boolean => isProtected(name) || isProtected(`${name}/`) || isAbove(name);
  for (const part of parts) {
    for (const name of part.names) {
      const trick = trickOf(part, name, { isProtected, leadsThere });
      if (trick === null) continue;
      yield { trick, evidence: Buffer.from(`${name}${part.link ? ' (a link)' : ''}`, 'latin1').toString('utf8') };
    }
  }
}

interface Names {
  isProtected(name: string): boolean;
  /** Whether a link of this name may lead to protected files. */
  leadsThere(name: string): boolean;
}

function trickOf(part: PatchPart, name: string, { isProtected, leadsThere }: Names): Trick | null {
  if (leadsOut(name) || isGit(name)) return 'path';
  if (part.link && (leadsThere(name) || escapes(part))) return 'link';
  if (isHook(name)) return 'interpreter-hook';
  if (isPlugin(name)) return 'plugin';
  if (isConfiguration(name)) return 'test-configuration';
  if (part.change === 'added' && isRunner(name)) return 'runner-shadow';
  if (isProtected(name)) return 'tests';
  if (part.change === 'deleted') return null;
  if (isInstalledRunner(name)) return 'runner-shadow';
  return isProgramName(name) && canRun(part) ? 'program-shadow' : null;
}

/** Whether a name leads out of the workspace. No capture writes such a name; a third-party patch may. */
const leadsOut = (name: string): boolean => name.startsWith('/') || name.split('/').includes('..');

const canRun = (part: PatchPart): boolean =>
  part.link ||
  headerOf(part.text).some((line) => /^(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 100755$/.test(line));
