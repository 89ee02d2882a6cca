import { type FleetShare, type FleetSlots, fleetShares, measureOf, sumOf } from './fleet-slots.ts';
import type { Slots } from './slots.ts';

/** A queue of rollouts that wait for slots: those of one run or sweep, or those by hand. */
export interface PlacementQueue {
  readonly name: string;
  readonly sweep: boolean;
  /** The run or sweep, by the end of its key; absent for rollouts by hand. */
  readonly share?: string | undefined;
  readonly weight: number;
}

/** The state of a queue by which it is compared with others. */
export interface Placed {
  readonly queue: PlacementQueue;
  /** The rollouts that are placed now. */
  readonly placing: { readonly size: number };
  /** The number of rollouts that wait on this host for a slot. */
  readonly waiting: number;
  /** The number of placements of other queues since its own last one, among runs or among sweeps. */
  readonly missed: number;
}

/** The order in which a host's queues get free slots. */
export interface PlacementOrder {
  /** Tells the slots of all hosts. Until then this host counts as the only one. */
  inFleet(fleet: FleetSlots): void;
  /** Tells the queues that there are. */
  follow(queues: readonly PlacementQueue[]): void;
  comesBefore(first: Placed, second: Placed): boolean;
}

type OwnSlots = Pick<Slots, 'capacity' | 'takenBy'>;
/** Compares two queues: a negative number if the first one comes before the second. */
type Compare = (first: Placed, second: Placed) => number;

export function createPlacementOrder(slots: OwnSlots): PlacementOrder {
  let queues: readonly PlacementQueue[] = [];
  let fleet: FleetSlots = { before: 0, all: slots.capacity };
  const compareAmong = (sweep: boolean): Compare =>
    comparing(
      queues.filter((one) => one.sweep === sweep && one.share !== undefined),
      slots,
      fleet,
    );
  let runs = compareAmong(false);
  let sweeps = compareAmong(true);
  const update = (): void => {
    runs = compareAmong(false);
    sweeps = compareAmong(true);
  };
  return {
    inFleet(now) {
      fleet = now;
      update();
    },
    follow(now) {
      queues = now;
      update();
    },
    comesBefore(first, second) {
      const { sweep } = first.queue;
      if (sweep !== second.queue.sweep) return !sweep;
      return (sweep ? sweeps : runs)(first, second) < 0;
    },
  };
}

/** Compares runs, or sweeps, and rollouts by hand. Those have no share of the fleet. */
function comparing(open: readonly PlacementQueue[], slots: OwnSlots, fleet: FleetSlots): Compare {
  const shares = fleetShares(fleet, open);
  const total = sumOf(open);
  const isAlone = fleet.all <= slots.capacity;
  const held = ({ queue, placing, waiting }: Placed): number => slots.takenBy(queue) + placing.size - waiting;
  const byHand = (weight: number): FleetShare => ({
    before: 0,
    none: (slots.capacity * weight) / (total + weight) < 0.5,
  });
  const shareOf = ({ name, weight }: PlacementQueue): FleetShare => shares.get(name) ?? byHand(weight);
  const isOverdue = (one: Placed): boolean =>
    shareOf(one.queue).none && held(one) === 0 && (one.missed + 1) * one.queue.weight >= total;
  const measure = (one: Placed): number => {
    const { share, weight } = one.queue;
    if (share === undefined) return measureOf(held(one), weight) + (total === 0 ? 0 : fleet.before / total);
    // As if the hosts before this one held what is due on them.
    return measureOf(shareOf(one.queue).before + held(one), weight);
  };
  return (first, second) => {
    const overdue = Number(isOverdue(second)) - Number(isOverdue(first));
    if (overdue !== 0) return overdue;
    const difference = measure(first) - measure(second);
    if (difference !== 0) return difference;
    // A host alone takes turns. Among several, all hosts must decide alike, or one run would get the slot on each of them.
    if (isAlone) return second.missed - first.missed;
    return first.queue.name < second.queue.name ? -1 : 1;
  };
}
