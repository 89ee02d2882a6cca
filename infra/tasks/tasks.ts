import type { Task, TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import { createDataSetOpener, type DataSetCache } from '../data-sets/data-set-opener.ts';
import type { Store } from '../store/store.ts';
import { parseSetAddress, resolveBelow, type SetAddress } from './addresses.ts';
import { createTaskFinder, type FoundTask } from './find-task.ts';
import { createBundles } from './harbor/bundle.ts';
import type { HarborTask } from './harbor/harbor.ts';
import { createListings, generated } from './listings.ts';
import { type Choice, countingOn, createOrder, type Order } from './order.ts';
import { createRecent } from './recent.ts';

/** Where tasks come from. Failures are TemperFailures UnknownTask, MalformedTask, UnsupportedTask, BlobMissing. */
export interface Tasks {
  /** Validates a task and puts its files into the store: from then on it is the same bytes everywhere. */
  resolve(address: TaskAddress): Promise<Task>;
  /** The task of an address, before it is packed. */
  find(address: TaskAddress): Promise<FoundTask>;
  /**
   * The index-th task of a set for training, of those that are not left out. A set that ends is gone through again and again,
   * each time in another order; the same set, seed, index and left-out tasks always give the same task. Null: all are left out.
   */
  choose(which: ChoiceRequest): Promise<Choice | null>;
  /** The first tasks of a set, in order; fewer where it has fewer. */
  first(set: TaskSetAddress, count: number): Promise<readonly TaskAddress[]>;
  /** All of a set that ends, in order. */
  list(set: TaskSetAddress): Promise<readonly TaskAddress[]>;
  /** As `list`, with the tasks, one at a time: for sets of any size. */
  scan(set: TaskSetAddress): AsyncIterable<FoundTask>;
  /** The files of a resolved task. */
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
  /** Directories below which addresses with a path may point. */
  readonly roots: readonly string[];
  readonly dataSets: DataSetCache;
}

/** A run goes through one set by one seed; several do at once. */
const mostOrders = 4;

export function createTasks({ store, roots, dataSets: cache }: TasksDependencies): Tasks {
  const bundles = createBundles(store);
  const dataSets = createDataSetOpener({ cache, resolvePath: (path) => resolveBelow(roots, path) });
  const { list } = createListings({ store, roots, dataSets });
  const { found, find } = createTaskFinder({ store, roots, bundles, dataSets });
  const orders = createRecent<{ readonly addresses: readonly TaskAddress[]; readonly order: Order }>(mostOrders);

  /** Made anew where the set is another by now. */
  async function orderOf(set: TaskSetAddress, seed: number): Promise<Order> {
    const addresses = await list(set);
    const key = `${set}#${seed}`;
    const known = orders.get(key);
    if (known?.addresses === addresses) return known.order;
    const order = createOrder(addresses, key);
    orders.set(key, { addresses, order });
    return order;
  }

  async function* scan(set: TaskSetAddress): AsyncIterable<FoundTask> {
    const parsed = parseSetAddress(set);
    if (parsed.kind === 'data-set' && parsed.task === null) {
      const dataSet = await dataSets.open(parsed);
      for await (const draft of dataSet.tasks()) yield found(`${set}#${draft.id}`, draft);
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
        ? generatedAt(parsed, index, leftOut)
        : (await orderOf(set, seed)).at(index, leftOut);
    },
    async first(set, count) {
      const parsed = parseSetAddress(set);
      const endless = parsed.kind === 'generated' && parsed.count === null;
      return endless
        ? Array.from({ length: count }, (_, index) => generated(parsed, index))
        : (await list(set)).slice(0, count);
    },
    open: (task) => bundles.open(task.bundle),
  };
}

function generatedAt(
  set: Pick<Extract<SetAddress, { kind: 'generated' }>, 'split' | 'seed'>,
  index: number,
  leftOut: ReadonlySet<TaskAddress>,
): Choice {
  const prefix = generated(set, 0).slice(0, -1);
  const numbers = [...leftOut].flatMap((one) => (one.startsWith(prefix) ? [Number(one.slice(prefix.length))] : []));
  const { at, passed } = countingOn(index, numbers);
  const passedOver = Array.from({ length: passed }, (_, back) => generated(set, at - passed + back));
  return { address: generated(set, at), passedOver };
}
