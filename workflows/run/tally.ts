import { addLedgers, toMs } from '../algorithms/cost.ts';
import { fateOnArrival, summaryOfUnstarted } from '../algorithms/group-report.ts';
import { byAge, staleness, waitedFor } from '../algorithms/staleness.ts';
import type { Budget } from '../contracts/budget.ts';
import type { RunCost } from '../contracts/cost.ts';
import type { SettledGroup } from '../contracts/ended-group.ts';
import type { GroupSummary } from '../contracts/group.ts';
import { type Fate, fates, type Outcome, outcomes, zeroCount } from '../contracts/outcome.ts';
import type { RunInput, StepResult, TasksLeftOut } from '../contracts/run.ts';
import type { RunState, StepPlan } from '../contracts/run-state.ts';
import { createOutcomeWatch, type OutcomeWatch } from '../shared/outcome-watch.ts';
import { createEarlyGroups, type EarlyGroups } from './early-groups.ts';
import { createFlagWatch, type FlagWatch } from './flag-watch.ts';
import { createRecentGroups, type RecentGroups } from './recent-groups.ts';
import type { RunTally } from './run-tally.ts';
import { createStaleWatch, type StaleWatch } from './stale-watch.ts';
import { createUpdateWatch, type UpdateWatch } from './update-watch.ts';

const rewardsKept = 50;

/**
 * Creates the tally of an execution that started at `nowMs`, with the state that an earlier one carried on, or null. `onSettled`
 * receives each group when it has its fate.
 */
export const createRunTally = (
  input: RunInput,
  state: RunState | null,
  nowMs: number,
  onSettled: (group: SettledGroup) => void = () => {},
): RunTally => new Tally(input, state, nowMs, onSettled);

class Tally implements RunTally {
  readonly startedAt: number;
  groupsStarted: number;
  step: number;
  policyVersion: number;
  readonly updates: UpdateWatch;
  readonly skippedSteps: number[];
  pausedBecause: string | null;
  missing = 0;
  readonly inFlight: Map<number, number>;
  readonly ready: Map<number, number>;
  readonly groups: Record<Fate, number>;
  readonly rollouts: Record<Outcome, number>;
  readonly flagWatch: FlagWatch;
  cost: RunCost;
  budget: Budget;
  leftOut: TasksLeftOut | null;
  readonly recentRewards: number[];
  readonly recentGroups: RecentGroups;
  readonly watch: OutcomeWatch;
  readonly staleWatch: StaleWatch;
  readonly #input: RunInput;
  /** The groups in flight that the run has stopped. */
  readonly #stopped: Set<number>;
  readonly #early: EarlyGroups;
  #dropped: [number, Fate][];
  #plan: StepPlan | null;

  constructor(input: RunInput, state: RunState | null, nowMs: number, onSettled: (group: SettledGroup) => void) {
    this.#input = input;
    this.#stopped = new Set(state?.stopped);
    this.#early = createEarlyGroups(state?.takenEarly ?? []);
    this.startedAt = state?.startedAt ?? nowMs;
    this.groupsStarted = state?.groupsStarted ?? 0;
    this.step = state?.step ?? 0;
    this.policyVersion = state?.policyVersion ?? 0;
    this.updates = createUpdateWatch(input.pauseAtEmptySteps, state?.updates);
    this.skippedSteps = [...(state?.skippedSteps ?? [])];
    this.pausedBecause = state?.pausedBecause ?? null;
    this.inFlight = new Map(state?.inFlight);
    this.ready = new Map(state?.ready);
    this.groups = { ...(state?.groups ?? zeroCount(fates)) };
    this.rollouts = { ...(state?.rollouts ?? zeroCount(outcomes)) };
    this.flagWatch = createFlagWatch(state);
    this.cost = state?.cost ?? { rollouts: {}, trainerSeconds: 0 };
    this.budget = state?.budget ?? input.budget ?? {};
    this.leftOut = state?.leftOut ?? null;
    this.recentRewards = [...(state?.recentRewards ?? [])];
    this.recentGroups = createRecentGroups(input.training, state?.recentGroups ?? [], onSettled);
    this.watch = createOutcomeWatch({ infra: input.pauseAtInfraShare, 'invalid-task': 1 }, state?.recentOutcomes ?? []);
    this.staleWatch = createStaleWatch(input, state?.staleGroups);
    this.#plan = state?.plan ?? null;
    this.#dropped = [...(state?.dropped ?? [])].map(([index, fate]) => [index, fate]);
  }

  addTrainerTime(sinceMs: number): void {
    const { trainerSeconds } = this.cost;
    this.cost = { ...this.cost, trainerSeconds: toMs(trainerSeconds + (Date.now() - sinceMs) / 1000) };
  }

  admit(): number {
    const index = this.groupsStarted;
    this.groupsStarted += 1;
    this.inFlight.set(index, this.policyVersion);
    return index;
  }

  stops(index: number): void {
    this.#stopped.add(index);
  }

  arrive(summary: GroupSummary, cancelling: boolean): void {
    if (!this.inFlight.delete(summary.index)) return;
    const isStopped = this.#stopped.delete(summary.index);
    for (const outcome of outcomes) {
      const count = summary.outcomes[outcome];
      this.rollouts[outcome] += count;
      for (let i = 0; i < count; i += 1) this.watch.add(outcome);
    }
    this.cost = { ...this.cost, rollouts: addLedgers(this.cost.rollouts, summary.cost) };
    this.flagWatch.add(summary);
    this.recentGroups.add(summary);
    const early = this.#early.fateOf(summary.index);
    const fate = cancelling ? 'cancelled' : fateOnArrival(summary, this.#input.rolloutsPerGroup);
    if (early !== undefined) this.#settle(summary.index, early);
    else if (fate === null) this.ready.set(summary.index, summary.minVersion);
    else if (fate === 'stale' && isStopped) this.#dropStale(summary.index, fate, summary.minVersion);
    else this.#drop(summary.index, fate);
  }

  neverStarted(index: number, why: string): void {
    this.arrive(summaryOfUnstarted(index, this.policyVersion, this.#input.rolloutsPerGroup), false);
    this.pausedBecause ??= `group ${index} could not be started: ${why}; fix the cause, then resume`;
  }

  get inStep(): number {
    return this.#plan?.groups.length ?? 0;
  }

  get waitsFor(): readonly number[] {
    const { step, inFlight, ready } = this;
    const { groupsPerStep, maxStaleness, onStale } = this.#input;
    if (onStale !== 'wait' || this.#plan !== null || ready.size < groupsPerStep) return [];
    return waitedFor({ step: step + 1, inFlight, ready, groupsPerStep, maxStaleness });
  }

  takeForStep(): StepPlan | null {
    if (this.#plan !== null) return this.#plan;
    const { groupsPerStep, maxStaleness, onStale } = this.#input;
    if (onStale !== 'keep') {
      for (const [index, minVersion] of this.ready) {
        if (staleness(this.step + 1, minVersion) <= maxStaleness) continue;
        this.ready.delete(index);
        this.#dropStale(index, onStale === 'withhold' ? 'withheld' : 'stale', minVersion);
      }
    }
    if (this.ready.size < groupsPerStep || this.waitsFor.length > 0) return null;
    const oldest = [...this.ready].sort(byAge).slice(0, groupsPerStep);
    const groups = oldest.map(([index]) => index).sort((a, b) => a - b);
    for (const index of groups) this.ready.delete(index);
    const minVersions = groups.map((index) => new Map(oldest).get(index) ?? 0);
    this.#plan = { groups, minVersions, dropped: this.#dropped, failure: null, isSkipped: false };
    this.#dropped = [];
    return this.#plan;
  }

  failStep(failure: string, pausedBecause: string): void {
    const plan = this.#plan;
    // A step that could not be skipped is made again, unless it is skipped once more.
    if (plan !== null) this.#plan = { ...plan, failure: plan.isSkipped ? plan.failure : failure, isSkipped: false };
    this.pausedBecause = pausedBecause;
  }

  get hasFailedStep(): boolean {
    return this.pausedBecause !== null && this.#plan !== null && this.#plan.failure !== null;
  }

  skipStep(): number {
    if (this.#plan !== null) this.#plan = { ...this.#plan, isSkipped: true };
    this.pausedBecause = null;
    this.forgetReasons();
    return this.inStep;
  }

  forgetReasons(): void {
    this.watch.forget();
    this.staleWatch.forget();
    this.updates.forget();
  }

  finishStep(result: StepResult): void {
    const { pinned } = result;
    const groups = pinned?.map(([index]) => index) ?? this.#plan?.groups ?? [];
    const untrained = result.groups.trained === 0 ? 'zero-variance' : null;
    this.recentGroups.settle(groups, result.skippedBecause === null ? untrained : 'skipped');
    for (const fate of fates) this.groups[fate] += result.groups[fate];
    if (pinned !== undefined && this.#plan !== null) this.#early.adopt(pinned, this.#plan, this);
    this.#plan = null;
    this.step = result.step;
    this.policyVersion = result.step;
    this.updates.add(result);
    if (result.skippedBecause !== null) this.skippedSteps.push(result.step);
    if (result.meanReward !== null) this.recentRewards.push(result.meanReward);
    this.recentRewards.splice(0, Math.max(0, this.recentRewards.length - rewardsKept));
    this.staleWatch.forget();
  }

  #dropStale(index: number, fate: 'stale' | 'withheld', minVersion: number): void {
    this.staleWatch.add(minVersion);
    this.#drop(index, fate);
  }

  #drop(index: number, fate: Fate): void {
    this.#settle(index, fate);
    this.#dropped.push([index, fate]);
  }

  #settle(index: number, fate: Fate): void {
    this.groups[fate] += 1;
    this.recentGroups.settle([index], fate);
  }

  dropReady(fate: Fate): void {
    for (const index of this.ready.keys()) this.#drop(index, fate);
    this.ready.clear();
  }

  dropStep(fate: Fate): void {
    for (const index of this.#plan?.groups ?? []) this.#drop(index, fate);
    this.#plan = null;
  }

  state(): RunState {
    return {
      startedAt: this.startedAt,
      groupsStarted: this.groupsStarted,
      step: this.step,
      policyVersion: this.policyVersion,
      updates: this.updates.carried,
      skippedSteps: this.skippedSteps,
      inFlight: [...this.inFlight],
      ready: [...this.ready],
      groups: this.groups,
      rollouts: this.rollouts,
      flags: this.flagWatch.counts,
      recentFlags: this.flagWatch.recent,
      pausedBecause: this.pausedBecause,
      recentOutcomes: this.watch.recent,
      recentRewards: this.recentRewards,
      recentGroups: this.recentGroups.carried,
      plan: this.#plan,
      dropped: this.#dropped,
      cost: this.cost,
      staleGroups: this.staleWatch.seen,
      stopped: [...this.#stopped],
      takenEarly: this.#early.carried,
      budget: this.budget,
      leftOut: this.leftOut,
    };
  }
}
