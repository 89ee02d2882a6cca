import { addRollout } from '../algorithms/cost.ts';
import { addFlags, countFlags, noFlags } from '../algorithms/flags.ts';
import { countActions, countedReward } from '../algorithms/on-flag.ts';
import { reaches } from '../algorithms/rounding.ts';
import { type Pin, whyLeftOut } from '../algorithms/summarise-sweep.ts';
import type { Budget } from '../contracts/budget.ts';
import { outcomes, zeroCount } from '../contracts/outcome.ts';
import type { PolicyRef } from '../contracts/policy.ts';
import { leftOutKinds, type SweepInput, type SweepPlan, type SweepRow } from '../contracts/sweep.ts';
import type { SweepState, SweepSums } from '../contracts/sweep-state.ts';
import { createOutcomeWatch } from '../shared/outcome-watch.ts';
import type { Pausable } from '../shared/pause.ts';
import { createUnsavedRows, type UnsavedRows } from '../shared/unsaved-rows.ts';
import { packAttempts, unpackAttempts } from './packed-attempts.ts';

/** An attempt by its number, with the number of its earlier rollouts that ended as `infra`. */
export type NumberedAttempt = readonly [number: number, retry: number];

/**
 * The bookkeeping of a sweep. Every attempt is waiting to start, in flight, waiting for its retry, or has ended. It is plain
 * data and rules, without Temporal.
 */
export interface SweepTally extends Pausable {
  /** The number of changes that the workflow waits for. */
  changes: number;
  readonly startedAt: number;
  budget: Budget;
  /** The attempts in flight, by number, with their retry. */
  readonly inFlight: ReadonlyMap<number, number>;
  /** Attempts that an earlier execution started. This one must ask for their ends, because they don't report to it. */
  readonly adopted: ReadonlySet<number>;
  endedEarly: string | null;
  cancelling: boolean;
  readonly unsaved: UnsavedRows<SweepRow>;
  readonly begun: boolean;
  /** The plan; throws before `begin`. */
  readonly plan: SweepPlan;
  /** The evaluated version or model, as far as it is known. */
  readonly pin: Pin;
  /** The policy that is evaluated, if its run is known. */
  readonly policy: PolicyRef | undefined;
  /** The number of tasks; 0 before `begin`. */
  readonly tasks: number;
  /** The number of attempts in all. */
  readonly planned: number;
  /** The number of attempts that have ended and are not retried. */
  readonly ended: number;
  readonly sums: SweepSums;
  /** Whether nothing is in flight and nothing is left to start. */
  readonly done: boolean;
  /** Whether an attempt waits to start and a slot is free for it. */
  readonly canStart: boolean;
  begin(plan: SweepPlan): void;
  /** Takes the attempts to start now, at most `atMost`; retries come first. */
  take(atMost: number): NumberedAttempt[];
  /** Notes that an earlier execution has started an attempt that was taken. */
  adopt(number: number): void;
  /** Returns an attempt that was taken and could not be started. */
  notStarted(attempt: NumberedAttempt): void;
  /** Counts a rollout that has ended. A second report of the same one changes nothing. */
  settle(number: number, row: SweepRow): void;
  state(): SweepState;
}

export interface SweepTallyOptions {
  readonly input: SweepInput;
  /** The state that an earlier execution carried on, or null. */
  readonly state: SweepState | null;
  readonly nowMs: number;
}

export const createSweepTally = (options: SweepTallyOptions): SweepTally => new Tally(options);

class Tally implements SweepTally {
  readonly startedAt: number;
  budget: Budget;
  readonly inFlight: Map<number, number>;
  readonly adopted: Set<number>;
  pausedBecause: string | null;
  endedEarly: string | null;
  cancelling = false;
  changes = 0;
  readonly unsaved: UnsavedRows<SweepRow>;
  readonly watch;
  readonly #input: SweepInput;
  readonly #again: NumberedAttempt[];
  #plan: SweepPlan | null;
  #sums: SweepSums;
  /** The number of the next attempt. */
  #next: number;

  constructor({ input, state, nowMs }: SweepTallyOptions) {
    this.#input = input;
    this.#plan = state?.plan ?? null;
    this.startedAt = state?.startedAt ?? nowMs;
    this.budget = state?.budget ?? input.budget ?? {};
    this.#next = state?.next ?? 0;
    this.inFlight = state === null ? new Map() : unpackAttempts(state.inFlight);
    this.adopted = new Set(this.inFlight.keys());
    this.#again = state === null ? [] : [...unpackAttempts(state.again)];
    this.unsaved = createUnsavedRows(state?.chunks ?? 0);
    this.pausedBecause = state?.pausedBecause ?? null;
    this.endedEarly = state?.endedEarly ?? null;
    this.watch = createOutcomeWatch({ infra: input.pauseAtInfraShare }, state?.recentOutcomes ?? []);
    this.#sums = state?.sums ?? {
      outcomes: zeroCount(outcomes),
      leftOut: zeroCount(leftOutKinds),
      retried: 0,
      counted: 0,
      passed: 0,
      rewards: 0,
      flags: noFlags,
      cost: {},
    };
  }

  begin(plan: SweepPlan): void {
    this.#plan = plan;
  }

  get begun(): boolean {
    return this.#plan !== null;
  }

  get plan(): SweepPlan {
    if (this.#plan === null) throw new Error('expected a plan, got none; begin first');
    return this.#plan;
  }

  get pin(): Pin {
    const { policyVersion = null, upstream } = this.#plan ?? {};
    return { policyVersion, ...(upstream !== undefined && { upstream }) };
  }

  get policy(): PolicyRef | undefined {
    return this.#plan?.policy;
  }

  get tasks(): number {
    return this.#plan?.tasks ?? 0;
  }

  get planned(): number {
    return this.tasks * this.#input.attempts;
  }

  get ended(): number {
    return Object.values(this.sums.outcomes).reduce((sum, count) => sum + count, 0);
  }

  get sums(): SweepSums {
    const sums = this.#sums;
    if (this.endedEarly === null && !this.cancelling) return sums;
    // Nothing is retried any more, so the attempts that waited for a retry have ended as infra.
    const infra = this.#again.filter(([, retry]) => retry > 0).length;
    return {
      ...sums,
      retried: sums.retried - infra,
      outcomes: { ...sums.outcomes, infra: sums.outcomes.infra + infra },
      leftOut: { ...sums.leftOut, infra: sums.leftOut.infra + infra },
    };
  }

  get done(): boolean {
    return this.inFlight.size === 0 && !this.#anyWaiting;
  }

  get canStart(): boolean {
    return this.#anyWaiting && this.inFlight.size < this.#input.concurrency;
  }

  get #anyWaiting(): boolean {
    return this.endedEarly === null && (this.#again.length > 0 || this.#next < this.planned);
  }

  take(atMost: number): NumberedAttempt[] {
    const taken: NumberedAttempt[] = [];
    const free = Math.min(atMost, this.#input.concurrency - this.inFlight.size);
    while (taken.length < free && this.#anyWaiting) {
      const again = this.#again.shift();
      const attempt = again ?? ([this.#next, 0] as const);
      if (again === undefined) this.#next += 1;
      this.inFlight.set(...attempt);
      taken.push(attempt);
    }
    return taken;
  }

  adopt(number: number): void {
    this.adopted.add(number);
    this.changes += 1;
  }

  notStarted(attempt: NumberedAttempt): void {
    this.inFlight.delete(attempt[0]);
    this.#again.push(attempt);
    this.changes += 1;
  }

  settle(number: number, row: SweepRow): void {
    if (this.inFlight.get(number) !== row.retry) return;
    this.inFlight.delete(number);
    this.adopted.delete(number);
    this.changes += 1;
    this.unsaved.add(row);
    this.watch.add(row.outcome);
    this.#sums = { ...this.#sums, cost: addRollout(this.#sums.cost, row.outcome, row.cost) };
    if (row.outcome === 'infra' && row.retry < this.#input.infraRetries && !this.cancelling) {
      this.#again.push([number, row.retry + 1]);
      this.#sums = { ...this.#sums, retried: this.#sums.retried + 1 };
    } else {
      this.#count(row);
    }
  }

  #count(row: SweepRow): void {
    // If the server could not say which version is in service, the first rollout decides.
    if (this.plan.policyVersion === null && row.versions !== null) {
      this.#plan = { ...this.plan, policyVersion: row.versions[0] };
    }
    const { onFlag } = this.#input;
    const flags = addFlags(this.#sums.flags, { ...countFlags([row.flags]), ...countActions([row], onFlag) });
    const sums = { ...this.#sums, flags };
    const ended = { ...sums.outcomes, [row.outcome]: sums.outcomes[row.outcome] + 1 };
    const why = whyLeftOut(row, this.pin, onFlag);
    if (why !== null) {
      this.#sums = { ...sums, outcomes: ended, leftOut: { ...sums.leftOut, [why]: sums.leftOut[why] + 1 } };
      if (why === 'other-version') this.endedEarly ??= this.#otherVersionText(row);
      return;
    }
    const reward = countedReward(row, onFlag) ?? 0;
    this.#sums = {
      ...sums,
      outcomes: ended,
      counted: sums.counted + 1,
      passed: sums.passed + (reaches(reward, this.#input.passAt) ? 1 : 0),
      rewards: sums.rewards + reward,
    };
  }

  #otherVersionText({ versions, workflowId, model }: SweepRow): string {
    const { policyVersion, upstream } = this.pin;
    if (upstream !== undefined)
      return `${upstream.name} is another model now: the sweep evaluates ${upstream.model}, and ${model} sampled ${workflowId}`;
    const range = [...new Set(versions)].join(' to ');
    return `the engine now serves another version: the sweep evaluates version ${policyVersion}, and version ${range} sampled ${workflowId}`;
  }

  state(): SweepState {
    return {
      plan: this.plan,
      startedAt: this.startedAt,
      next: this.#next,
      inFlight: packAttempts(this.inFlight),
      again: packAttempts(new Map(this.#again)),
      chunks: this.unsaved.chunks,
      sums: this.#sums,
      pausedBecause: this.pausedBecause,
      recentOutcomes: this.watch.recent,
      endedEarly: this.endedEarly,
      budget: this.budget,
    };
  }
}
