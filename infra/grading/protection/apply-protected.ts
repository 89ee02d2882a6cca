import { FileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { type Application, applyPatch } from '../patch/apply-patch.ts';
import { patchParts } from '../patch/patch-parts.ts';
import { filterPatch } from './filter-patch.ts';
import { mergeSettings } from './merge-settings.ts';
import { matcher } from './patterns.ts';
import { modulePaths, type Protection, protectedPatterns, runnerModules } from './rules.ts';
import { readSettings, removeSettings, SettingsLate } from './settings-files.ts';

/** The protected paths that a diff changed and that were restored: their number, and the first few for readers. */
export interface Restored {
  readonly count: number;
  readonly paths: readonly string[];
}

/** A patch of a workspace, and what it must not change there. */
interface ProtectedPatch {
  readonly workdir: string;
  readonly patch: Uint8Array;
  readonly protection: Protection;
}

/** No module of a runner is larger. */
const moduleBytes = 2 ** 20;
const namedPaths = 5;
const pathLength = 120;

/** Applies a patch to a fresh workspace, except its changes to protected files. */
export async function applyProtected(
  sandbox: Sandbox,
  input: ProtectedPatch,
  signal: AbortSignal,
): Promise<Application & { readonly restored: Restored | null }> {
  try {
    return await applyAndMerge(sandbox, input, signal);
  } catch (error) {
    if (!(error instanceof SettingsLate)) throw error;
    return { applied: null, refusal: error.message, timedOut: true, restored: null };
  }
}

async function applyAndMerge(
  sandbox: Sandbox,
  { workdir, patch, protection }: ProtectedPatch,
  signal: AbortSignal,
): Promise<Application & { readonly restored: Restored | null }> {
  const patterns = protectedPatterns(protection);
  const first = filterPatch(patch, patterns, { mergeSections: protection.testsInRepository });
  const bases = await readSettings(sandbox, { workdir, names: first.sectioned }, signal);
  // A file that cannot be read at the base commit cannot be merged either: restore it as a whole.
  const unmergeable = new Set(first.sectioned.filter((name) => bases.get(name) === undefined));
  const kept = unmergeable.size === 0 ? first : filterPatch(patch, patterns, { mergeSections: true, unmergeable });
  const application = await applyPatch(sandbox, workdir, kept.patch, signal);
  if (application.applied === null) return { ...application, restored: null };
  const names = first.sectioned.filter((name) => !unmergeable.has(name));
  const nows = await readSettings(sandbox, { workdir, names }, signal);
  const merged = await mergeSettings(names, bases, nows);
  const removed = [...merged].flatMap(([name, text]) => (text === null ? [name] : []));
  await removeSettings(sandbox, { workdir, names: removed }, signal);
  const tree = new Map(
    [...merged].flatMap(([name, text]) =>
      text === null ? [] : [[utf8Of(name), { mode: 0o644, bytes: Buffer.from(text) }] as const],
    ),
  );
  if (tree.size > 0) await sandbox.putFiles({ tree, at: workdir, owner: 'agent' }, signal);
  const all = [...kept.restored, ...merged.keys()].map(utf8Of);
  const paths = all.slice(0, namedPaths).map((path) => path.slice(0, pathLength));
  return { ...application, restored: all.length === 0 ? null : { count: all.length, paths } };
}

const utf8Of = (name: string): string => Buffer.from(name, 'latin1').toString('utf8');

/**
 * Returns the protection of a task in a workspace at its base commit. A repository with a module of a runner's name is that
 * runner, or shadows it anyway: there the module is code like any other, which a solution may change, move or turn into a
 * package.
 */
export async function protectionInWorkspace(
  sandbox: Sandbox,
  { workdir, patch, protection }: ProtectedPatch,
  signal: AbortSignal,
): Promise<Protection> {
  const changed = patchParts(patch).flatMap(({ names }) => names);
  const touched = runnerModules.filter((name) => changed.some(matcher(modulePaths(name))));
  const ownModules: string[] = [];
  for (const name of touched) {
    const paths = [`${workdir}/${name}.py`, `${workdir}/${name}/__init__.py`];
    const found = await Promise.all(paths.map((path) => isFile(sandbox, path, signal)));
    if (found.includes(true)) ownModules.push(name);
  }
  return ownModules.length === 0 ? protection : { ...protection, ownModules };
}

/** Whether a path of a sandbox is a regular file, and not larger than a module can be. */
async function isFile(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    await sandbox.readFile(path, moduleBytes, signal);
    return true;
  } catch (error) {
    if (error instanceof FileRefused) return false;
    throw error;
  }
}
