import { z } from 'zod';
import { type Flag, tricks } from '../../../workflows/contracts/flags.ts';
import { FileRefused, isFileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { unreadFlag } from '../flags/capture.ts';
import type { GradedTask } from '../task.ts';
import { type BasePrograms, limits, parseBase, readBase, UnreadablePrograms } from './base-programs.ts';

/*
 * What is kept in the agent's own sandbox for its tests, out of the reach of an agent that is not root: what the sandbox held before
 * the agent, and the flags that were raised before the tests began.
 */

/** The directory with all of it. */
export const keptPrograms = '/root/base.programs';
const name = 'read';
const flagsName = 'flags';

/** Keeps these programs, also where there are none, so that an agent cannot pretend that. Call it before the agent starts. */
export async function keepPrograms(
  sandbox: Pick<Sandbox, 'exec' | 'putFiles'>,
  { task, workdir }: { readonly task: GradedTask; readonly workdir: string },
  signal: AbortSignal,
): Promise<void> {
  await keep(sandbox, name, await readBase(sandbox, { task, workdir, path: null }, signal), signal);
}

export interface FoundPrograms {
  /** The kept programs; null if the PATH leads to no directory of the agent's. */
  readonly base: BasePrograms | null;
  /** The reason for which they cannot be read, otherwise null. Only an agent that is root can have caused it. */
  readonly refusal: string | null;
}

/** Returns the kept programs. */
export async function findKept(sandbox: Pick<Sandbox, 'readFile'>, signal: AbortSignal): Promise<FoundPrograms> {
  const path = `${keptPrograms}/${name}`;
  try {
    return { base: await parseBase(await sandbox.readFile(path, limits.maxOutputBytes, signal)), refusal: null };
  } catch (error) {
    if (!(error instanceof FileRefused) && !(error instanceof UnreadablePrograms)) throw error;
    const reason = `the list at ${path} of the programs that were there before the agent was changed or removed: ${error.message}`;
    return { base: null, refusal: reason };
  }
}

/** Keeps the flags that another activity attempt could not raise again, since the sandbox is no longer as the agent left it. */
export const keepFlags = (
  sandbox: Pick<Sandbox, 'putFiles'>,
  flags: readonly Flag[],
  signal: AbortSignal,
): Promise<void> => keep(sandbox, flagsName, Buffer.from(JSON.stringify(flags)), signal);

const flagList = z.array(z.strictObject({ trick: z.enum(tricks), evidence: z.string() }));
const maxFlagBytes = 2 ** 20;

/** Returns the flags that an earlier attempt has kept. */
export async function findFlags(sandbox: Pick<Sandbox, 'readFile'>, signal: AbortSignal): Promise<readonly Flag[]> {
  const path = `${keptPrograms}/${flagsName}`;
  try {
    return flagList.parse(JSON.parse(String(await sandbox.readFile(path, maxFlagBytes, signal))));
  } catch (error) {
    if (isFileRefused(error, 'missing')) return [];
    if (!(error instanceof FileRefused) && !(error instanceof SyntaxError) && !(error instanceof z.ZodError))
      throw error;
    return [unreadFlag(`the flags at ${path}, which were raised before the tests, were changed`)];
  }
}

const keep = (
  sandbox: Pick<Sandbox, 'putFiles'>,
  file: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<void> =>
  sandbox.putFiles({ tree: new Map([[file, { mode: 0o600, bytes }]]), at: keptPrograms, owner: 'grader' }, signal);
