import { fateOnArrival } from '../algorithms/group-fate.ts';
import { staleness } from '../algorithms/staleness.ts';
import type { GroupSummary } from '../contracts/group.ts';
import { type Fate, fates, type Outcome, outcomes, zeroCount } from '../contracts/outcome.ts';
import type { RunInput, RunState, StepResult } from '../contracts/run.ts';

const rewardsKept = 50;
const outcomesKept = 32;

/**
 * The books of a run. Every group it started is in flight, ready, in the step that is being done, or has one fate; the
 * sums always match. Plain data and rules, no Temporal in here.
 */
export class Ledger {
  groupsStarted: number;
  step: number;
  policyVersion: number;
  pausedBecause: string | null;
  /** Groups that ended without a report since the last reconciliation. */
  missing = 0;
  /** Number of the group → policy version at admission. */
  readonly inFlight: Map<number, number>;
  /** Number of the group → smallest policy version, oldest group first. */
  readonly ready: Map<number, number>;
  readonly groups: Record<Fate, number>;
  readonly rollouts: Record<Outcome, number>;
  readonly recentOutcomes: Outcome[];
  readonly recentRewards: number[];
  #dropped: [number, Fate][];
  #taken = new Map<number, number>();
  readonly #input: RunInput;

  constructor(input: RunInput, state: RunState | null) {
    this.#input = input;
    this.groupsStarted = state?.groupsStarted ?? 0;
    this.step = state?.step ?? 0;
    this.policyVersion = state?.policyVersion ?? 0;
    this.pausedBecause = state?.pausedBecause ?? null;
    this.inFlight = new Map(state?.inFlight);
    this.ready = new Map(state?.ready);
    this.groups = { ...(state?.groups ?? zeroCount(fates)) };
    this.rollouts = { ...(state?.rollouts ?? zeroCount(outcomes)) };
    this.recentOutcomes = [...(state?.recentOutcomes ?? [])];
    this.recentRewards = [...(state?.recentRewards ?? [])];
    this.#dropped = [...(state?.dropped ?? [])].map(([index, fate]) => [index, fate]);
  }

  /** Admits the next group; its number never comes again. */
  admit(): number {
    const index = this.groupsStarted;
    this.groupsStarted += 1;
    this.inFlight.set(index, this.policyVersion);
    return index;
  }

  /** A group has reported, or was reconciled. A second report of the same group changes nothing. */
  arrive(summary: GroupSummary, cancelling: boolean): void {
    if (!this.inFlight.delete(summary.index)) return;
    for (const outcome of outcomes) {
      const count = summary.outcomes[outcome];
      this.rollouts[outcome] += count;
      for (let i = 0; i < count; i += 1) this.recentOutcomes.push(outcome);
    }
    this.recentOutcomes.splice(0, Math.max(0, this.recentOutcomes.length - outcomesKept));
    const fate = cancelling ? 'cancelled' : fateOnArrival(summary, this.#input.rolloutsPerGroup);
    if (fate === null) this.ready.set(summary.index, summary.minVersion);
    else this.drop(summary.index, fate);
  }

  /** Takes the oldest ready groups for the next step; those too stale for it are dropped first. Null: not enough. */
  takeForStep(): number[] | null {
    const { groupsPerStep, maxStaleness, onStale } = this.#input;
    if (onStale !== 'keep') {
      for (const [index, minVersion] of this.ready) {
        if (staleness(this.step + 1, minVersion) <= maxStaleness) continue;
        this.ready.delete(index);
        this.drop(index, onStale === 'withhold' ? 'withheld' : 'stale');
      }
    }
    if (this.ready.size < groupsPerStep) return null;
    const taken = [...this.ready.keys()].sort((a, b) => a - b).slice(0, groupsPerStep);
    this.#taken = new Map(taken.map((index) => [index, this.ready.get(index) ?? this.policyVersion]));
    for (const index of taken) this.ready.delete(index);
    return taken;
  }

  /** A step failed: its groups are ready again, with the version that was known of them. */
  putBack(groups: readonly number[]): void {
    for (const index of groups) this.ready.set(index, this.#taken.get(index) ?? this.policyVersion);
  }

  finishStep(result: StepResult): void {
    this.step = result.step;
    this.policyVersion = result.step;
    for (const fate of fates) this.groups[fate] += result.groups[fate];
    if (result.meanReward !== null) this.recentRewards.push(result.meanReward);
    this.recentRewards.splice(0, Math.max(0, this.recentRewards.length - rewardsKept));
  }

  drop(index: number, fate: Fate): void {
    this.groups[fate] += 1;
    this.#dropped.push([index, fate]);
  }

  /** Ready groups that no step will take any more. */
  dropReady(fate: Fate): void {
    for (const index of this.ready.keys()) this.drop(index, fate);
    this.ready.clear();
  }

  /** Hands over, once, the groups that ended without a step. */
  takeDropped(): readonly (readonly [number, Fate])[] {
    const dropped = this.#dropped;
    this.#dropped = [];
    return dropped;
  }

  /** Why the run must pause itself; null while its rollouts teach something. */
  reasonToPause(): string | null {
    const recent = this.recentOutcomes;
    if (recent.length < 16) return null;
    for (const [outcome, share] of [
      ['infra', this.#input.pauseAtInfraShare],
      ['invalid-task', 1],
    ] as const) {
      const count = recent.filter((one) => one === outcome).length;
      if (count / recent.length < share) continue;
      return `${count} of the last ${recent.length} rollouts ended as ${outcome}; look at one of them, mend the cause, then resume`;
    }
    return null;
  }

  /** After a resume the past must not pause the run again at once. */
  forgetOutcomes(): void {
    this.recentOutcomes.length = 0;
  }

  state(): RunState {
    return {
      groupsStarted: this.groupsStarted,
      step: this.step,
      policyVersion: this.policyVersion,
      inFlight: [...this.inFlight],
      ready: [...this.ready],
      groups: this.groups,
      rollouts: this.rollouts,
      pausedBecause: this.pausedBecause,
      recentOutcomes: this.recentOutcomes,
      recentRewards: this.recentRewards,
      dropped: this.#dropped,
    };
  }
}
