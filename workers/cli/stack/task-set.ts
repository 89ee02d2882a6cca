import { stat } from 'node:fs/promises';
import type { Config } from '../../../infra/settings/config.ts';
import { type ParsedSetAddress, parseSetAddress } from '../../../infra/tasks/address.ts';
import { resolveBelowRoots } from '../../../infra/tasks/task-directories.ts';
import { configuredTarget } from '../../../infra/temporal/connection.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { SandboxChoice } from '../../../workflows/contracts/sandbox-kinds.ts';
import type { TaskSetAddress } from '../../../workflows/contracts/task.ts';
import { asUsageError, orUsageError, UsageError } from '../text/errors.ts';
import { lostImages } from '../text/local-images.ts';
import { counted, note } from '../text/output.ts';
import { packSet } from './pack-set.ts';
import type { StackClient } from './stack-client.ts';
import { openTaskSource, pathsOf, type TaskSource } from './task-source.ts';

/** The tasks that a workflow is to be started on, as the user names them. */
export interface NamedSet {
  readonly tasks: string;
  readonly sandbox: SandboxChoice | undefined;
}

/**
 * Returns the address by which the workers read the tasks that a user names: a directory or an address, as for every command.
 * Tasks that only this process can read are packed into the store. Throws a UsageError if the set has no task that can be
 * used, so that no workflow starts on it.
 */
export async function taskSetFor(
  { tasks: named, sandbox }: NamedSet,
  stack: StackClient,
  signal?: AbortSignal,
): Promise<TaskSetAddress> {
  const { config, store } = stack;
  const source = await openTaskSource(named, { config, store, offline: false });
  const parsed = orUsageError(() => parseSetAddress(source.address), '--tasks');
  if (await isElsewhere(source.address, config)) return source.address;
  try {
    const { address, images } = (await areReadable(source.address, parsed, config))
      ? { address: source.address, images: await imageOfFirst(parsed, source) }
      : await packed(source, stack, signal);
    const lost = lostImages(sandbox ?? 'auto', config.sandbox, images);
    if (lost !== null) note(lost);
    return address;
  } catch (error) {
    throw asUsageError(error, '--tasks');
  }
}

/** Whether a stack that runs elsewhere may have the paths of a set, which this machine lacks. Its workers will say so if not. */
export async function isElsewhere(address: string, config: Config): Promise<boolean> {
  if (configuredTarget(config.env) === undefined) return false;
  const found = await Promise.all(pathsOf(address).map((path) => stat(path).catch(() => null)));
  return found.includes(null);
}

/** Whether the workers read the same tasks by the address: they see the task roots, and downloads of this machine if it is theirs. */
async function areReadable(address: string, parsed: ParsedSetAddress, config: Config): Promise<boolean> {
  if (parsed.kind === 'data-set') {
    const isHere = configuredTarget(config.env) === undefined;
    if (parsed.location.kind !== 'path' && !isHere) return false;
    if (parsed.format === 'module') return false;
    // The repository of each row would have to be downloaded first.
    if (/^https?:/.test(parsed.options.repositories ?? '')) return false;
  }
  const below = await Promise.all(pathsOf(address).map((path) => isBelowRoots(config.taskRoots, path)));
  return below.every(Boolean);
}

const isBelowRoots = (roots: readonly string[], path: string): Promise<boolean> =>
  resolveBelowRoots(roots, path).then(
    () => true,
    () => false,
  );

/** Reads the first task of a set that can be used, and names its image. */
async function imageOfFirst(parsed: ParsedSetAddress, { tasks, address }: TaskSource): Promise<readonly string[]> {
  if (parsed.kind === 'generated') return [];
  let failure: TemperFailure | null = null;
  for await (const { read } of tasks.scan(address)) {
    try {
      return [(await read()).description.image];
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
      failure ??= error;
    }
  }
  throw failure ?? new UsageError(`--tasks: ${address} has no tasks; name a set that has some`);
}

async function packed(source: TaskSource, { store, shared }: StackClient, signal: AbortSignal | undefined) {
  const failures: TemperFailure[] = [];
  const broken = (failure: TemperFailure): void => void failures.push(failure);
  const set = await packSet(source, { store, packs: shared.common, broken }, signal);
  const [first] = failures;
  if (set === null) {
    throw first ?? new UsageError(`--tasks: ${source.address} has no tasks; name a set that has some`);
  }
  if (first !== undefined) {
    note(
      `${counted(failures.length, 'task')} of ${source.address} cannot be used and ${failures.length === 1 ? 'is' : 'are'} left out, for example: ${first.message}; \`temper tasks check\` lists the reasons`,
    );
  }
  note(`packed ${counted(set.tasks.length, 'task')} of ${source.address} as ${set.set}`);
  return { address: set.set, images: set.tasks.map(({ image }) => image) };
}
