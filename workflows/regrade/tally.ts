import { failureKinds } from '../contracts/failures.ts';
import { zeroCount } from '../contracts/outcome.ts';
import {
  type RegradeCarried,
  type RegradeInput,
  type RegradeRow,
  type RegradeSums,
  regradeStates,
} from '../contracts/regrade.ts';
import { InfraWatch } from '../sweep/infra-watch.ts';
import { UnsavedRows } from '../sweep/unsaved-rows.ts';

/** The books of a regrade: each rollout of its list is still to come, in flight, or done. Plain data, no Temporal in here. */
export class RegradeBooks {
  readonly startedAt: number;
  /** Of the list, by their numbers. */
  readonly inFlight = new Set<number>();
  readonly unsaved: UnsavedRows<RegradeRow>;
  readonly watch: InfraWatch;
  pausedBecause: string | null;
  endedEarly: string | null = null;
  /** Rises with everything that may change what is to be done. */
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
    this.unsaved = new UnsavedRows(carried?.chunks ?? 0);
    this.watch = new InfraWatch(input.pauseAtInfraShare, carried?.recentOutcomes ?? []);
    this.pausedBecause = carried?.pausedBecause ?? null;
    this.#sums = carried?.sums ?? { states: zeroCount(regradeStates), compared: 0, before: 0, after: 0 };
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
    return this.begun && this.inFlight.size === 0 && !this.#anyLeft;
  }

  get #anyLeft(): boolean {
    return this.#again.length > 0 || this.#next < this.rollouts;
  }

  /** What there is room for now: first what has to be graded after all. */
  take(): number[] {
    const taken: number[] = [];
    while (this.#anyLeft && this.inFlight.size < this.#input.concurrency) {
      const again = this.#again.shift();
      const number = again ?? this.#next;
      if (again === undefined) this.#next += 1;
      this.inFlight.add(number);
      taken.push(number);
    }
    return taken;
  }

  settle(number: number, row: RegradeRow): void {
    this.inFlight.delete(number);
    this.changes += 1;
    this.unsaved.add(row);
    const { state, before, after, failure } = row;
    if (state !== 'left-out') {
      const infra = failure !== null && failureKinds[failure.type].outcome === 'infra';
      this.watch.see(infra ? 'infra' : 'scored');
    }
    const states = { ...this.#sums.states, [state]: this.#sums.states[state] + 1 };
    this.#sums =
      before === null || after === null
        ? { ...this.#sums, states }
        : {
            states,
            compared: this.#sums.compared + 1,
            before: this.#sums.before + before,
            after: this.#sums.after + after,
          };
  }

  /** It was taken, and nothing came of it: it is still to be graded. */
  notGraded(number: number): void {
    this.inFlight.delete(number);
    this.#again.push(number);
    this.changes += 1;
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
