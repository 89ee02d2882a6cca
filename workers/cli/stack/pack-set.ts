import type { Records } from '../../../infra/store/records.ts';
import type { Store } from '../../../infra/store/store.ts';
import { blobAddress, packedAddress } from '../../../infra/tasks/address.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { TaskAddress, TaskSetAddress } from '../../../workflows/contracts/task.ts';
import { counted, live } from '../text/output.ts';
import type { TaskSource } from './task-source.ts';

export interface PackedTask {
  readonly id: string;
  readonly address: TaskAddress;
  readonly image: string;
}

export interface PackedSet {
  readonly set: TaskSetAddress;
  readonly tasks: readonly PackedTask[];
}

export interface Packing {
  readonly store: Store;
  /** Records that belong to no run. */
  readonly packs: Records;
  /** Takes the failure of a task that cannot be packed, which the set then lacks; it may throw. */
  broken(failure: TemperFailure): void;
}

/**
 * Packs the tasks of a set; null if none can be packed. The set is itself a blob, a list of the tasks' addresses, which
 * every host can read. Throws the signal's reason if that aborts.
 */
export async function packSet(
  { tasks: source, address: from }: TaskSource,
  { store, packs, broken }: Packing,
  signal?: AbortSignal,
): Promise<PackedSet | null> {
  const tasks: PackedTask[] = [];
  for await (const { id, pack } of source.scan(from)) {
    signal?.throwIfAborted();
    try {
      const { bundle, image } = await pack();
      tasks.push({ id, address: packedAddress(bundle.digest, id), image });
      live(`${counted(tasks.length, 'task')} packed`);
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
      broken(error);
    }
  }
  live('');
  if (tasks.length === 0) return null;
  const { digest } = await store.putJson(tasks.map(({ address }) => address));
  const set = blobAddress(digest);
  // A user may use this address at any time, so retention keeps what it names.
  await packs.write('packs', digest, { set, from, tasks: tasks.map(({ id, address }) => ({ id, address })) });
  return { set, tasks };
}
