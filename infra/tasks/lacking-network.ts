import { withOfflineTests } from '../../workflows/algorithms/offline-tests.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exceeds, type NetworkMode } from '../../workflows/contracts/network.ts';
import type { Task, TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { DataSetFormat } from '../data-sets/data-set.ts';
import { dataSetFormats } from '../data-sets/formats/index.ts';
import { lackChoices, lackText, type NetworkLack, networkLacks } from '../egress/grant-network.ts';
import { parseSetAddress } from './address.ts';
import type { FoundTask } from './find-task.ts';
import { forEachConcurrently } from './for-each-concurrently.ts';
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

const none: Lacking = { tasks: 0, lacking: [] };
/** Tasks that are read at once: reading a task waits for the disk. */
const readAtOnce = 8;

/** Returns what a task lacks first; undefined if it lacks nothing. */
export const lackOf = (
  task: Pick<Task, 'network' | 'testNetwork' | 'steps'>,
  { cap, offlineTests }: GivenNetwork,
): NetworkLack | undefined => networkLacks(offlineTests ? withOfflineTests(task) : task, cap)[0];

/** Finds the tasks of a whole set that lack a network, apart from those that no run chooses. It reads each task of the set. */
export async function lackingInSet(
  tasks: Pick<Tasks, 'scan'>,
  set: TaskSetAddress,
  { skipped, ...given }: GivenNetwork & { readonly skipped: ReadonlySet<TaskAddress> },
  signal: AbortSignal,
): Promise<Lacking> {
  async function* chosen(): AsyncIterable<() => Promise<FoundTask>> {
    for await (const task of tasks.scan(set)) if (!skipped.has(task.address)) yield async () => task;
  }
  return mayLack(set, given) ? lackingOf(chosen(), given, signal) : none;
}

/** Finds the tasks that lack a network among some of a set. */
export async function lackingAmong(
  tasks: Pick<Tasks, 'find'>,
  { set, addresses }: { readonly set: TaskSetAddress; readonly addresses: readonly TaskAddress[] },
  given: GivenNetwork,
  signal: AbortSignal,
): Promise<Lacking> {
  async function* named(): AsyncIterable<() => Promise<FoundTask>> {
    for (const address of addresses) yield () => tasks.find(address);
  }
  return mayLack(set, given) ? lackingOf(named(), given, signal) : none;
}

/** Whether tasks of a set may lack a network, as far as that is known without reading them. */
function mayLack(set: TaskSetAddress, { cap }: GivenNetwork): boolean {
  if (!exceeds('public', cap)) return false;
  const parsed = parseSetAddress(set);
  if (parsed.kind === 'generated') return false;
  const format: DataSetFormat | null = parsed.kind === 'data-set' ? dataSetFormats[parsed.format] : null;
  return format?.isOffline !== true;
}

/** Reads tasks. One that cannot be read ends as such when it starts, whatever it lacks. */
async function lackingOf(
  tasks: AsyncIterable<() => Promise<FoundTask>>,
  given: GivenNetwork,
  signal: AbortSignal,
): Promise<Lacking> {
  const found = new Map<TaskAddress, LackingTask | null>();
  async function read(find: () => Promise<FoundTask>): Promise<void> {
    try {
      const { id, address, read: readTask } = await find();
      // Its place is that of its start, since tasks are read several at once.
      found.set(address, null);
      const lack = lackOf((await readTask()).description, given);
      if (lack !== undefined) found.set(address, { id, address, lack });
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
    }
  }
  await forEachConcurrently(tasks, readAtOnce, read, signal);
  signal.throwIfAborted();
  return { tasks: found.size, lacking: [...found.values()].filter((one) => one !== null) };
}

/** Throws UnsupportedTask if tasks of a set lack a network, with their number, an example, and the user's choices. */
export function requireNetworks(set: TaskSetAddress, { tasks, lacking }: Lacking): void {
  const [example] = lacking;
  if (example === undefined) return;
  const count = `${lacking.length} of ${tasks} ${tasks === 1 ? 'task needs' : 'tasks need'}`;
  throw new TemperFailure(
    'UnsupportedTask',
    `${set}: ${count} a network that TEMPER_NETWORK does not allow, for example ${example.id}${lackText(example.lack)}; ${lackChoices(example.lack, lacking.length > 1)}`,
  );
}
