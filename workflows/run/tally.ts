import { addFlags, noFlags } from '../algorithms/flags.ts';
import { fateOnArrival } from '../algorithms/group-report.ts';
import { staleness } from '../algorithms/staleness.ts';
import type { FlagCounts } from '../contracts/flags.ts';
import type { GroupSummary } from '../contracts/group.ts';
import { type Fate, fates, type Outcome, outcomes, zeroCount } from '../contracts/outcome.ts';
import type { RunInput, RunState, StepPlan, StepResult } from '../contracts/run.ts';

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
  flags: FlagCounts;
  readonly recentOutcomes: Outcome[];
  readonly recentRewards: number[];
  #dropped: [number, Fate][];
  #plan: StepPlan | null;
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
    this.flags = state?.flags ?? noFlags;
    this.recentOutcomes = [...(state?.recentOutcomes ?? [])];
    this.recentRewards = [...(state?.recentRewards ?? [])];
    this.#plan = state?.plan ?? null;
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
    if (summary.flags !== undefined) this.flags = addFlags(this.flags, summary.flags);
    const fate = cancelling ? 'cancelled' : fateOnArrival(summary, this.#input.rolloutsPerGroup);
    if (fate === null) this.ready.set(summary.index, summary.minVersion);
    else this.drop(summary.index, fate);
  }

  /** Groups of the step that has begun and is not done. */
  get inStep(): number {
    return this.#plan?.groups.length ?? 0;
  }

  /**
   * Takes the oldest ready groups for the next step; those too stale for it are dropped first. A step that failed is taken
   * up again with what it had. Null: not enough.
   */
  takeForStep(): StepPlan | null {
    if (this.#plan !== null) return this.#plan;
    const { groupsPerStep, maxStaleness, onStale } = this.#input;
    if (onStale !== 'keep') {
      for (const [index, minVersion] of this.ready) {
        if (staleness(this.step + 1, minVersion) <= maxStaleness) continue;
        this.ready.delete(index);
        this.drop(index, onStale === 'withhold' ? 'withheld' : 'stale');
      }
    }
    if (this.ready.size < groupsPerStep) return null;
    const groups = [...this.ready.keys()].sort((a, b) => a - b).slice(0, groupsPerStep);
    for (const index of groups) this.ready.delete(index);
    this.#plan = { groups, dropped: this.#dropped };
    this.#dropped = [];
    return this.#plan;
  }

  finishStep(result: StepResult): void {
    this.#plan = null;
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

  /** Groups of a step that nobody will do any more. */
  dropStep(fate: Fate): void {
    for (const index of this.#plan?.groups ?? []) this.drop(index, fate);
    this.#plan = null;
  }

  /** A group that was admitted and can't be started: all of its rollouts count as failed, and somebody has to look. */
  neverStarted(index: number, why: string): void {
    const counts = { ...zeroCount(outcomes), infra: this.#input.rolloutsPerGroup };
    this.arrive({ runKey: '', index, minVersion: this.policyVersion, outcomes: counts, meanReward: null }, false);
    this.pausedBecause ??= `group ${index} could not be started: ${why}; mend the cause, then resume`;
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
      flags: this.flags,
      pausedBecause: this.pausedBecause,
      recentOutcomes: this.recentOutcomes,
      recentRewards: this.recentRewards,
      plan: this.#plan,
      dropped: this.#dropped,
    };
  }
}
