import type { Flag, Trick } from '../../../workflows/contracts/flags.ts';
import { escapes } from '../patch/patch-links.ts';
import { headerOf, type PatchPart } from '../patch/patch-parts.ts';
import { matcher } from '../protection/patterns.ts';
import { type Protection, protectedPatterns, testConfiguration } from '../protection/rules.ts';

/** Where the workspace is first in the order of looking things up, such a file takes the place of the runner or of what it loads. */
const runners = matcher([
  ...['pytest', '_pytest', 'pluggy', 'iniconfig', 'unittest', 'doctest', 'nose', 'nose2'].flatMap(atTop),
  ...['argparse', 'ast', 'contextlib', 'difflib', 'enum', 'functools', 'importlib', 'inspect', 'io', 'json'].flatMap(
    atTop,
  ),
  ...['logging', 'os', 'pathlib', 'pprint', 're', 'shutil', 'signal', 'tempfile', 'time', 'traceback'].flatMap(atTop),
  ...['types', 'typing', 'warnings', 'weakref'].flatMap(atTop),
  ...['jest', 'vitest', 'mocha', 'chai', 'ava', 'tap'].map((name) => `node_modules/${name}/`),
  ...['node_modules/.bin/', 'vendor/bin/'],
]);

/** A module of Python in the workspace itself. */
function atTop(name: string): readonly string[] {
  return [`/${name}.py`, `/${name}.pyc`, `/${name}/__init__.*`];
}

/** What scripts of tests call by its name alone. */
const programs = new Set([
  ...['sh', 'bash', 'env', 'timeout', 'git', 'make', 'cat', 'grep', 'test'],
  ...['python', 'python3', 'pytest', 'pip', 'node', 'npm', 'npx', 'yarn', 'pnpm', 'jest', 'vitest', 'mocha'],
  ...['go', 'cargo', 'rustc', 'java', 'mvn', 'gradle', 'php', 'phpunit', 'ruby', 'bats'],
]);

const isHook = matcher(['sitecustomize.py', 'usercustomize.py', '*.pth']);
const isPlugin = matcher(['*.egg-info/', '*.dist-info/']);
const isConfiguration = matcher(testConfiguration);
const isGit = matcher(['.git']);

/** What the names of a patch's files tell. */
export function* flagChangedPaths(parts: readonly PatchPart[], protection: Protection): Generator<Flag> {
  const isProtected = matcher(protectedPatterns(protection));
  for (const part of parts) {
    for (const name of part.names) {
      const trick = trickOf(part, name, isProtected);
      if (trick === null) continue;
      yield { trick, evidence: Buffer.from(`${name}${part.link ? ' (a link)' : ''}`, 'latin1').toString('utf8') };
    }
  }
}

function trickOf(part: PatchPart, name: string, isProtected: (name: string) => boolean): Trick | null {
  if (leadsOut(name) || isGit(name)) return 'path';
  if (part.link && (isProtected(name) || isProtected(`${name}/`) || escapes(part))) return 'link';
  if (isHook(name)) return 'interpreter-hook';
  if (isPlugin(name)) return 'plugin';
  if (isConfiguration(name)) return 'test-configuration';
  if (part.change === 'added' && runners(name)) return 'runner-shadow';
  if (isProtected(name)) return 'tests';
  if (part.change !== 'added') return null;
  return programs.has(name.slice(name.lastIndexOf('/') + 1)) && canRun(part) ? 'program-shadow' : null;
}

/** No capture writes such a name; a patch from elsewhere may. */
const leadsOut = (name: string): boolean => name.startsWith('/') || name.split('/').includes('..');

const canRun = (part: PatchPart): boolean => part.link || headerOf(part.text).includes('new file mode 100755');
