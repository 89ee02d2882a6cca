import { FileRefused, isFileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';
import { type BasePrograms, limits, parseBase, readBase, UnreadablePrograms } from './base-programs.ts';

/** The directory with what a sandbox held before its agent, out of the agent's reach. */
export const keptPrograms = '/root/base.programs';
const name = 'read';

/** Keeps these programs in the agent's own sandbox for its tests. Call it before the agent starts. */
export async function keepPrograms(
  sandbox: Sandbox,
  { task, workdir }: { readonly task: GradedTask; readonly workdir: string },
  signal: AbortSignal,
): Promise<void> {
  const bytes = await readBase(sandbox, { task, workdir, path: null }, signal);
  if (bytes.byteLength === 0) return;
  await sandbox.putFiles(
    { tree: new Map([[name, { mode: 0o600, bytes }]]), at: keptPrograms, owner: 'grader' },
    signal,
  );
}

/** Returns the kept programs; null if the PATH leads to no directory of the agent's. */
export async function findKept(sandbox: Sandbox, signal: AbortSignal): Promise<BasePrograms | null> {
  const path = `${keptPrograms}/${name}`;
  try {
    return await parseBase(await sandbox.readFile(path, limits.maxOutputBytes, signal));
  } catch (error) {
    if (isFileRefused(error, 'missing')) return null;
    if (error instanceof FileRefused || !(error instanceof UnreadablePrograms)) throw error;
    // Only an agent that is root can have written there.
    throw new FileRefused('not-a-file', path, `expected the kept programs at ${path}, got something else`);
  }
}
