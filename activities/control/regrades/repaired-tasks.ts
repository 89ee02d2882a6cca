import { z } from 'zod';
import type { Records } from '../../../infra/store/records.ts';
import type { Store } from '../../../infra/store/store.ts';
import { indexById } from '../../../infra/tasks/find-task.ts';
import type { Tasks } from '../../../infra/tasks/tasks.ts';

/** Addresses of tasks by their ids; also the content of `blob:<sha256>` if the tasks were packed for a regrade. */
const taskIndex = z.record(z.string(), z.string());
const recordName = 'tasks';

export interface RepairedTasks {
  /** Records the tasks of a set before anything is graded by them. */
  plan(regradeKey: string, set: string): Promise<void>;
  /** Returns the address of the task of that id, or null if the set has no such task. */
  addressOf(regradeKey: string, id: string): Promise<string | null>;
}

export interface RepairedTasksDependencies {
  readonly tasks: Pick<Tasks, 'scan'>;
  readonly store: Pick<Store, 'getJson'>;
  readonly records: Records;
}

/**
 * Creates the tasks that a regrade uses instead of those that its rollouts had. They are found by id, which a rollout's
 * result names.
 */
export function createRepairedTasks({ tasks, store, records }: RepairedTasksDependencies): RepairedTasks {
  // A regrade asks once for each rollout, and the index may be long, so the last one is kept.
  let last: { readonly key: string; readonly addresses: Promise<ReadonlyMap<string, string>> } | null = null;

  async function read(regradeKey: string): Promise<ReadonlyMap<string, string>> {
    return new Map(Object.entries(taskIndex.parse(await records.read(regradeKey, recordName))));
  }

  async function indexOf(set: string): Promise<ReadonlyMap<string, string>> {
    const [, digest] = /^blob:([0-9a-f]{64})$/.exec(set) ?? [];
    const packed = digest === undefined ? null : taskIndex.safeParse(await store.getJson(digest));
    if (packed?.success) return new Map(Object.entries(packed.data));
    return indexById(set, tasks.scan(set), ({ address }) => address);
  }

  return {
    async plan(regradeKey, set) {
      await records.write(regradeKey, recordName, Object.fromEntries(await indexOf(set)));
    },
    async addressOf(regradeKey, id) {
      if (last?.key !== regradeKey) last = { key: regradeKey, addresses: read(regradeKey) };
      const { addresses } = last;
      addresses.catch(() => {
        last = null;
      });
      return (await addresses).get(id) ?? null;
    },
  };
}
