import type { Sandbox } from '../../sandbox/sandbox.ts';
import { type Application, applyPatch } from '../patch/apply-patch.ts';
import { requireSuccess } from '../workspace/require-success.ts';
import { filterPatch } from './filter-patch.ts';
import { escapePattern } from './patterns.ts';
import { readText } from './read-text.ts';
import { type Protection, protectedPatterns } from './rules.ts';
import { sectionedFiles } from './sections.ts';

/** The protected paths that a diff changed and that were restored: their number, and the first few for readers. */
export interface Restored {
  readonly count: number;
  readonly paths: readonly string[];
}

const namedPaths = 5;
const pathLength = 120;

/** Applies a patch to a fresh workspace, except its changes to protected files. */
export async function applyProtected(
  sandbox: Sandbox,
  {
    workdir,
    patch,
    protection,
  }: { readonly workdir: string; readonly patch: Uint8Array; readonly protection: Protection },
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
