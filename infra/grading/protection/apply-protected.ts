import { FileRefused, isFileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { type Application, applyPatch } from '../patch/apply-patch.ts';
import { patchParts } from '../patch/patch-parts.ts';
import { requireSuccess } from '../workspace/require-success.ts';
import { filterPatch } from './filter-patch.ts';
import { escapePattern, matcher } from './patterns.ts';
import { modulePaths, type Protection, protectedPatterns, runnerModules } from './rules.ts';
import { sectionedFiles } from './sections.ts';

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

/** No configuration file is larger. */
const fileBytes = 2 ** 20;
const namedPaths = 5;
const pathLength = 120;

/** Applies a patch to a fresh workspace, except its changes to protected files. */
export async function applyProtected(
  sandbox: Sandbox,
  { workdir, patch, protection }: ProtectedPatch,
  signal: AbortSignal,
): Promise<Application & { readonly restored: Restored | null }> {
  const patterns = protectedPatterns(protection);
  const first = filterPatch(patch, patterns, { mergeSections: protection.testsInRepository });
  const found = await Promise.all(
    first.sectioned.map(async (bytes) => {
      const path = Buffer.from(bytes, 'latin1').toString('utf8');
      return { path, base: await readText(sandbox, `${workdir}/${path}`, signal) };
    }),
  );
  // A file that cannot be read at the base commit cannot be merged either: restore it as a whole.
  const unreadable = found.filter(({ base }) => base === undefined).map(({ path }) => escapePattern(path));
  const kept =
    unreadable.length === 0 ? first : filterPatch(patch, [...patterns, ...unreadable], { mergeSections: true });
  const application = await applyPatch(sandbox, workdir, kept.patch, signal);
  if (application.applied === null) return { ...application, restored: null };
  const merged: string[] = [];
  for (const { path, base } of found) {
    if (base === undefined) continue;
    const now = await readText(sandbox, `${workdir}/${path}`, signal);
    const merge = sectionedFiles[path.split('/').at(-1) ?? ''];
    const text = now === undefined || merge === undefined ? base : merge(base, now);
    if (text === now) continue;
    merged.push(path);
    await writeText(sandbox, { workdir, path, text }, signal);
  }
  const all = [...kept.restored.map((path) => Buffer.from(path, 'latin1').toString('utf8')), ...merged];
  const paths = all.slice(0, namedPaths).map((path) => path.slice(0, pathLength));
  return { ...application, restored: all.length === 0 ? null : { count: all.length, paths } };
}

/** Writes a file of the workspace; null removes it. */
async function writeText(
  sandbox: Sandbox,
  { workdir, path, text }: { readonly workdir: string; readonly path: string; readonly text: string | null },
  signal: AbortSignal,
): Promise<void> {
  if (text !== null) {
    const tree = new Map([[path, { mode: 0o644, bytes: Buffer.from(text) }]]);
    return sandbox.putFiles({ tree, at: workdir, owner: 'agent' }, signal);
  }
  const argv = ['rm', '-f', '--', `${workdir}/${path}`] as const;
  const limits = { timeoutMs: 60_000, maxOutputBytes: 4096 };
  requireSuccess(
    await sandbox.exec({ account: 'agent', cwd: '/', argv: [...argv], env: {}, ...limits }, signal),
    `removing ${path}`,
  );
}

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
    const found = await Promise.all(paths.map((path) => readText(sandbox, path, signal)));
    if (found.some((content) => typeof content === 'string')) ownModules.push(name);
  }
  return ownModules.length === 0 ? protection : { ...protection, ownModules };
}

/** Reads a configuration file in a sandbox; null if there is no file, undefined if it is not a regular file or too large. */
async function readText(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<string | null | undefined> {
  try {
    return (await sandbox.readFile(path, fileBytes, signal)).toString('utf8');
  } catch (error) {
    if (isFileRefused(error, 'missing')) return null;
    if (error instanceof FileRefused) return undefined;
    throw error;
  }
}
