import { LRUCache } from 'lru-cache';
import type { Task, TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import { createDataSetOpener, type DataSetCache } from '../data-sets/data-set-opener.ts';
import { createBundles } from '../harbor/bundle.ts';
import { type HarborTask, ofStep } from '../harbor/harbor-task.ts';
import { fillVariables, type HostVariables } from '../harbor/host-variables.ts';
import type { Store } from '../store/store.ts';
import { type GeneratedSet, generatedAddress, parseSetAddress } from './address.ts';
import { createTaskFinder, type FoundTask } from './find-task.ts';
import { createTaskLister } from './list-tasks.ts';
import { type Choice, countSkipping, createTaskOrder, type TaskOrder } from './order-tasks.ts';
import { resolveBelowRoots } from './task-directories.ts';

/** Finds, lists and packs tasks by address. Throws TemperFailure UnknownTask, MalformedTask, UnsupportedTask or BlobMissing. */
export interface Tasks {
  /** Validates a task and puts its files into the store, so that every later reader gets the same bytes. */
  resolve(address: TaskAddress): Promise<Task>;
  /** Finds the task of an address without packing it. */
  find(address: TaskAddress): Promise<FoundTask>;
  /**
   * Chooses the index-th task of a set for training, without those that are left out; null when all are. A finite set is
   * repeated, each time in another order. Equal sets, seeds, indexes and left-out tasks always give the same task.
   */
  choose(which: ChoiceRequest): Promise<Choice | null>;
  /** Lists the first `count` tasks of a set, in order, or all when it has fewer. */
  first(set: TaskSetAddress, count: number): Promise<readonly TaskAddress[]>;
  /** Lists all tasks of a finite set, in order. */
  list(set: TaskSetAddress): Promise<readonly TaskAddress[]>;
  /** Yields the tasks of a finite set in order, one at a time, for sets of any size. */
  scan(set: TaskSetAddress): AsyncIterable<FoundTask>;
  /** Reads the files of a resolved task, or of one of its steps, with the host's variables that it may have in its environments. */
  open(task: Task): Promise<HarborTask>;
}

export interface ChoiceRequest {
  readonly set: TaskSetAddress;
  readonly seed: number;
  readonly index: number;
  readonly leftOut: ReadonlySet<TaskAddress>;
}

export interface TasksDependencies {
  readonly store: Store;
  /** The directories below which the paths of addresses must be. */
  readonly roots: readonly string[];
  readonly dataSets: DataSetCache;
  /** The variables of this host that tasks may have. Default: none. */
  readonly variables?: HostVariables;
}

/** The number of cached orders: a run uses one, and a few runs may be active at once. */
const maxCachedOrders = 4;

export function createTasks({ store, roots, dataSets: cache, variables = {} }: TasksDependencies): Tasks {
  const bundles = createBundles(store);
  const dataSets = createDataSetOpener({ cache, resolvePath: (path) => resolveBelowRoots(roots, path) });
  const { list } = createTaskLister({ store, roots, dataSets });
  const { fromDraft, find } = createTaskFinder({ store, roots, bundles, dataSets });
  const orders = new LRUCache<string, { readonly addresses: readonly TaskAddress[]; readonly order: TaskOrder }>({
    max: maxCachedOrders,
  });

  /** Returns the order of a set, and creates another when the set has changed. */
  async function orderOf(set: TaskSetAddress, seed: number): Promise<TaskOrder> {
    const addresses = await list(set);
    const key = `${set}#${seed}`;
    const known = orders.get(key);
    if (known?.addresses === addresses) return known.order;
    const order = createTaskOrder(addresses, key);
    orders.set(key, { addresses, order });
    return order;
  }

  async function* scan(set: TaskSetAddress): AsyncIterable<FoundTask> {
    const parsed = parseSetAddress(set);
    if (parsed.kind === 'data-set' && parsed.task === null) {
      const dataSet = await dataSets.open(parsed);
      for await (const draft of dataSet.tasks()) yield fromDraft(`${set}#${draft.id}`, draft);
    } else {
      for (const address of await list(set)) yield await find(address);
    }
  }

  return {
    find,
    list,
    scan,
    resolve: async (address) => (await find(address)).pack(),
    async choose({ set, seed, index, leftOut }) {
      const parsed = parseSetAddress(set);
      return parsed.kind === 'generated' && parsed.count === null
        ? chooseGenerated(parsed, index, leftOut)
        : (await orderOf(set, seed)).at(index, leftOut);
    },
    async first(set, count) {
      const parsed = parseSetAddress(set);
      const isEndless = parsed.kind === 'generated' && parsed.count === null;
      return isEndless
        ? Array.from({ length: count }, (_, index) => generatedAddress(parsed, index))
        : (await list(set)).slice(0, count);
    },
    open: async (task) => ofStep(fillVariables(await bundles.open(task.bundle), variables), task.step),
  };
}

function chooseGenerated(set: GeneratedSet, index: number, leftOut: ReadonlySet<TaskAddress>): Choice {
  const prefix = generatedAddress(set, 0).slice(0, -1);
  const numbers = [...leftOut].flatMap((one) => (one.startsWith(prefix) ? [Number(one.slice(prefix.length))] : []));
  const { at, passed } = countSkipping(index, numbers);
  const passedOver = Array.from({ length: passed }, (_, back) => generatedAddress(set, at - passed + back));
  return { address: generatedAddress(set, at), passedOver };
}
