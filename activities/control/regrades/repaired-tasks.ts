import { z } from 'zod';
import type { Records } from '../../../infra/store/records.ts';
import type { Store } from '../../../infra/store/store.ts';
import { indexById } from '../../../infra/tasks/find-task.ts';
import type { Tasks } from '../../../infra/tasks/tasks.ts';

/** Addresses of tasks by their ids; also what `blob:<sha256>` holds where the tasks were packed for a regrade. */
const taskIndex = z.record(z.string(), z.string());
const recordName = 'tasks';

export interface RepairedTasks {
  /** Keeps which tasks a set has, before anything is graded by them. */
  plan(regradeKey: string, set: string): Promise<void>;
  /** The address of the task of that id; null: the set has none. */
  addressOf(regradeKey: string, id: string): Promise<string | null>;
}

export interface RepairedTasksDependencies {
  readonly tasks: Pick<Tasks, 'scan'>;
  readonly store: Pick<Store, 'getJson'>;
  readonly records: Records;
}

/** The tasks that a regrade takes in place of those that its rollouts had: a rollout's result names its task by the id. */
export function createRepairedTasks({ tasks, store, records }: RepairedTasksDependencies): RepairedTasks {
  // A regrade asks once for each rollout; its list may be long.
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
