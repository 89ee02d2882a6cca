import type { Fate } from '../contracts/outcome.ts';
import type { StepResult } from '../contracts/run.ts';
import type { StepPlan } from '../contracts/run-state.ts';

/** The parts of a run's tally that say where a group is. */
interface Groups {
  readonly inFlight: ReadonlyMap<number, number>;
  readonly ready: Map<number, number>;
  readonly groupsStarted: number;
  readonly groups: Record<Fate, number>;
}

/**
 * The groups that a pinned step took before they have reported. Only a run whose database was restored to before the end of a
 * step has any: other groups may have ended first since.
 */
export interface EarlyGroups {
  /** All, as continue-as-new carries them. */
  readonly carried: readonly (readonly [number, Fate])[];
  /** Takes the groups of a pinned step, which are counted, instead of those of the plan, which are ready again. */
  adopt(pinned: NonNullable<StepResult['pinned']>, plan: StepPlan, tally: Groups): void;
  /** Returns the fate of a group that has reported, and forgets it; undefined if no step took it early. */
  fateOf(index: number): Fate | undefined;
}

export function createEarlyGroups(carried: readonly (readonly [number, Fate])[]): EarlyGroups {
  const early = new Map(carried);
  return {
    get carried() {
      return [...early];
    },
    adopt(pinned, { groups: planned, minVersions }, { inFlight, ready, groupsStarted, groups }) {
      const taken = new Map(pinned);
      for (const [position, index] of planned.entries())
        if (!taken.has(index)) ready.set(index, minVersions[position] ?? 0);
      for (const [index, fate] of pinned) {
        if (planned.includes(index) || ready.delete(index)) continue;
        // It is counted when it reports. One that was dropped keeps its fate.
        groups[fate] -= 1;
        if (inFlight.has(index) || index >= groupsStarted) early.set(index, fate);
      }
    },
    fateOf(index) {
      const fate = early.get(index);
      early.delete(index);
      return fate;
    },
  };
}
