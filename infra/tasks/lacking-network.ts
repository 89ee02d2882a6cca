import { withOfflineTests } from '../../workflows/algorithms/offline-tests.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exceeds, type NetworkMode } from '../../workflows/contracts/network.ts';
import type { Task, TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { DataSetFormat } from '../data-sets/data-set.ts';
import { dataSetFormats } from '../data-sets/formats/index.ts';
import { lackChoices, lackText, type NetworkLack, networkLacks } from '../egress/grant-network.ts';
import { parseSetAddress } from './address.ts';
import { lookAtTasks, named } from './look-at-tasks.ts';
import type { Tasks } from './tasks.ts';

/** A task that must not start, because it needs a network that it does not get. */
export interface LackingTask {
  readonly id: string;
  readonly address: TaskAddress;
  readonly lack: NetworkLack;
}

/** The tasks of a set that lack a network. */
export interface Lacking {
  /** The number of tasks that were looked at. */
  readonly tasks: number;
  readonly lacking: readonly LackingTask[];
}

/** The network that tasks get. */
export interface GivenNetwork {
  /** The mode that the operator allows at most. */
  readonly cap: NetworkMode;
  /** Whether the tests have none, because the user says so. */
  readonly offlineTests?: true | undefined;
}

/** Returns what a task lacks first; undefined if it lacks nothing. */
export const lackOf = (
  task: Pick<Task, 'network' | 'testNetwork' | 'steps'>,
  { cap, offlineTests }: GivenNetwork,
): NetworkLack | undefined => networkLacks(offlineTests ? withOfflineTests(task) : task, cap)[0];

/** Finds the tasks that lack a network among some of a set. */
export async function lackingAmong(
  tasks: Pick<Tasks, 'find'>,
  { set, addresses }: { readonly set: TaskSetAddress; readonly addresses: readonly TaskAddress[] },
  given: GivenNetwork,
  signal: AbortSignal,
): Promise<Lacking> {
  if (!mayLack(set, given)) return { tasks: 0, lacking: [] };
  const seen = await lookAtTasks(
    named(tasks, addresses),
    ({ description }, { id, address }) => ({ id, address, lack: lackOf(description, given) }),
    signal,
  );
  const lacking = seen.flatMap(({ lack, ...task }) => (lack === undefined ? [] : [{ ...task, lack }]));
  return { tasks: seen.length, lacking };
}

/** Whether tasks of a set may lack a network, as far as that is known without reading them. */
export function mayLack(set: TaskSetAddress, { cap }: GivenNetwork): boolean {
  if (!exceeds('public', cap)) return false;
  const parsed = parseSetAddress(set);
  if (parsed.kind === 'generated') return false;
  const format: DataSetFormat | null = parsed.kind === 'data-set' ? dataSetFormats[parsed.format] : null;
  return format?.isOffline !== true;
}

/** Throws UnsupportedTask if tasks of a set lack a network, with their number, an example, and the user's choices. */
export function requireNetworks(set: TaskSetAddress, { tasks, lacking }: Lacking): void {
  // An example with a command says most.
  const example = lacking.find(({ lack }) => lack.neededFor !== null) ?? lacking[0];
  if (example === undefined) return;
  const count = `${lacking.length} of ${tasks} ${tasks === 1 ? 'task needs' : 'tasks need'}`;
  const choices = lackChoices(lacking.map(({ lack }) => lack));
  throw new TemperFailure(
    'UnsupportedTask',
    `${set}: ${count} a network that TEMPER_NETWORK does not allow, for example ${example.id}${lackText(example.lack)}; ${choices}`,
  );
}
