import { addRollout } from '../algorithms/cost.ts';
import { failureKinds } from '../contracts/failures.ts';
import { type Outcome, zeroCount } from '../contracts/outcome.ts';
import {
  type RegradeCarried,
  type RegradeInput,
  type RegradeRow,
  type RegradeSums,
  regradeStates,
} from '../contracts/regrade.ts';
import { createOutcomeWatch } from '../shared/outcome-watch.ts';
import type { Pausable } from '../shared/pause.ts';
import { createUnsavedRows, type UnsavedRows } from '../shared/unsaved-rows.ts';

/**
 * The bookkeeping of a regrade. Each rollout of its list is waiting, in flight, or done. It is plain data and rules, without
 * Temporal.
 */
export interface RegradeTally extends Pausable {
  /** The number of changes that the workflow waits for. */
  changes: number;
  readonly startedAt: number;
  /** The rollouts in flight, by their numbers in the list. */
  readonly inFlight: ReadonlySet<number>;
  readonly unsaved: UnsavedRows<RegradeRow>;
  endedEarly: string | null;
  readonly begun: boolean;
  /** The number of rollouts in the list; 0 before `begin`. */
  readonly rollouts: number;
  readonly sums: RegradeSums;
  /** Whether nothing is in flight and nothing is left to grade. */
  readonly done: boolean;
  begin(rollouts: number): void;
  /** Takes the rollouts to grade now. Those that could not be graded before come first. */
  take(): number[];
  /** Returns a rollout that was taken and could not be graded, after some seconds of evaluations. */
  notGraded(number: number, evaluationSeconds: number): void;
  settle(number: number, row: RegradeRow, evaluationSeconds: number): void;
  carried(): RegradeCarried;
}

export const createRegradeTally = (input: RegradeInput, carried: RegradeCarried | null, now: number): RegradeTally =>
  new Tally(input, carried, now);

class Tally implements RegradeTally {
  readonly startedAt: number;
  readonly inFlight = new Set<number>();
  readonly unsaved: UnsavedRows<RegradeRow>;
  readonly watch;
  pausedBecause: string | null;
  endedEarly: string | null = null;
  changes = 0;
  readonly #input: RegradeInput;
  #rollouts: number | null;
  readonly #again: number[];
  #next: number;
  #sums: RegradeSums;

  constructor(input: RegradeInput, carried: RegradeCarried | null, now: number) {
    this.#input = input;
    this.startedAt = carried?.startedAt ?? now;
    this.#rollouts = carried?.rollouts ?? null;
    this.#again = [...(carried?.again ?? [])];
    this.#next = carried?.next ?? 0;
    this.unsaved = createUnsavedRows(carried?.chunks ?? 0);
    this.watch = createOutcomeWatch({ infra: input.pauseAtInfraShare }, carried?.recentOutcomes ?? []);
    this.pausedBecause = carried?.pausedBecause ?? null;
    this.#sums = carried?.sums ?? {
      states: zeroCount(regradeStates),
      compared: 0,
      before: 0,
      after: 0,
      cost: {},
    };
  }

  begin(rollouts: number): void {
    this.#rollouts = rollouts;
  }

  get begun(): boolean {
    return this.#rollouts !== null;
  }

  get rollouts(): number {
    return this.#rollouts ?? 0;
  }

  get sums(): RegradeSums {
    return this.#sums;
  }

  get done(): boolean {
    return this.begun && this.inFlight.size === 0 && !this.#anyWaiting;
  }

  get #anyWaiting(): boolean {
    return this.#again.length > 0 || this.#next < this.rollouts;
  }

  take(): number[] {
    const taken: number[] = [];
    while (this.#anyWaiting && this.inFlight.size < this.#input.concurrency) {
      const again = this.#again.shift();
      const number = again ?? this.#next;
      if (again === undefined) this.#next += 1;
      this.inFlight.add(number);
      taken.push(number);
    }
    return taken;
  }

  notGraded(number: number, evaluationSeconds: number): void {
    this.inFlight.delete(number);
    this.#again.push(number);
    if (evaluationSeconds > 0) this.#pay('cancelled', evaluationSeconds);
    this.changes += 1;
  }

  settle(number: number, row: RegradeRow, evaluationSeconds: number): void {
    this.inFlight.delete(number);
    this.changes += 1;
    this.unsaved.add(row);
    const { state, before, after, failure } = row;
    if (state !== 'left-out') {
      const ended = failure === null ? 'scored' : failureKinds[failure.type].outcome;
      this.watch.add(ended === 'infra' ? 'infra' : 'scored');
      this.#pay(ended === 'refused' ? 'invalid-task' : ended, evaluationSeconds);
    }
    const states = { ...this.#sums.states, [state]: this.#sums.states[state] + 1 };
    this.#sums =
      before === null || after === null
        ? { ...this.#sums, states }
        : {
            ...this.#sums,
            states,
            compared: this.#sums.compared + 1,
            before: this.#sums.before + before,
            after: this.#sums.after + after,
          };
  }

  #pay(outcome: Outcome, evaluationSeconds: number): void {
    const model = { promptTokens: 0, sampledTokens: 0, engineSeconds: 0, waitedSeconds: 0 };
    const cost = { ...model, sandboxSeconds: {}, evaluationSeconds };
    this.#sums = { ...this.#sums, cost: addRollout(this.#sums.cost, outcome, cost) };
  }

  carried(): RegradeCarried {
    return {
      rollouts: this.rollouts,
      startedAt: this.startedAt,
      next: this.#next,
      again: this.#again,
      chunks: this.unsaved.chunks,
      sums: this.#sums,
      pausedBecause: this.pausedBecause,
      recentOutcomes: this.watch.recent,
    };
  }
}
