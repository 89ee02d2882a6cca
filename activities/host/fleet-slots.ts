/*
 * The slots of all hosts, by which each host rounds the shares of runs so that they hold over the whole fleet: as if all slots
 * were given out in one row, of which each host has a part.
 */

/** The slots of the hosts that take new work, in the order of the hosts' names. */
export interface FleetSlots {
  /** The number of slots on the hosts before this one. */
  readonly before: number;
  readonly all: number;
}

export interface Weighed {
  readonly name: string;
  readonly weight: number;
}

/** The share of a run in the fleet, as a host needs it. */
export interface FleetShare {
  /** The whole slots that are due to the run on the hosts before this one. */
  readonly before: number;
  /** Whether its share of the whole fleet rounds to no slot at all. */
  readonly none: boolean;
}

/** Returns the share of each run (or sweep) by its name. */
export function fleetShares(fleet: FleetSlots, runs: readonly Weighed[]): ReadonlyMap<string, FleetShare> {
  const before = divideSlots(fleet.before, runs);
  const all = divideSlots(fleet.all, runs);
  return new Map(runs.map(({ name }) => [name, { before: before.get(name) ?? 0, none: all.get(name) === 0 }]));
}

/** Tells who comes next, the smallest first, by what each holds: the measure of Sainte-Laguë, which favours no one. */
export const measureOf = (held: number, weight: number): number => (held + 0.5) / weight;

/** Divides slots by weight. Of two with equal claims, the one whose name comes first gets the slot, on every host alike. */
function divideSlots(slots: number, among: readonly Weighed[]): ReadonlyMap<string, number> {
  const total = sumOf(among);
  const due = new Map(among.map(({ name, weight }) => [name, Math.floor((slots * weight) / total)]));
  const measure = ({ name, weight }: Weighed): number => measureOf(due.get(name) ?? 0, weight);
  const given = [...due.values()].reduce((sum, count) => sum + count, 0);
  for (let left = among.length === 0 ? 0 : slots - given; left > 0; left -= 1) {
    const next = among.reduce((first, one) => {
      const difference = measure(one) - measure(first);
      return difference < 0 || (difference === 0 && one.name < first.name) ? one : first;
    });
    due.set(next.name, (due.get(next.name) ?? 0) + 1);
  }
  return due;
}

export const sumOf = (weighed: readonly Pick<Weighed, 'weight'>[]): number =>
  weighed.reduce((sum, { weight }) => sum + weight, 0);
