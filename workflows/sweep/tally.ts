import { addFlags, countFlags, noFlags } from '../algorithms/flags.ts';
import { type Pin, whyLeftOut } from '../algorithms/summarise-sweep.ts';
import { outcomes, zeroCount } from '../contracts/outcome.ts';
import {
  leftOutKinds,
  type SweepInput,
  type SweepPlan,
  type SweepRow,
  type SweepState,
  type SweepSums,
} from '../contracts/sweep.ts';
import { InfraWatch } from './infra-watch.ts';
import { UnsavedRows } from './unsaved-rows.ts';

/** An attempt by its number, and how often it was made before. */
export type Numbered = readonly [number: number, retry: number];

/**
 * The books of a sweep: every attempt is still to come, in flight, to be made again, or ended for good. Plain data and
 * rules, no Temporal in here.
 */
export class SweepBooks {
  readonly startedAt: number;
  readonly inFlight: Map<number, number>;
  /** Started by an earlier execution: their ends are asked for, nobody reports them. */
  readonly adopted: Set<number>;
  pausedBecause: string | null;
  endedEarly: string | null;
  readonly unsaved: UnsavedRows<SweepRow>;
  readonly watch: InfraWatch;
  cancelling = false;
  /** Rises with everything that may change what is to be done. */
  changes = 0;
  readonly #input: SweepInput;
  readonly #again: Numbered[];
  #plan: SweepPlan | null;
  #sums: SweepSums;
  #next: number;

  constructor(input: SweepInput, state: SweepState | null, now: number) {
    this.#input = input;
    this.#plan = state?.plan ?? null;
    this.startedAt = state?.startedAt ?? now;
    this.#next = state?.next ?? 0;
    this.inFlight = new Map(state?.inFlight);
    this.adopted = new Set(this.inFlight.keys());
    this.#again = [...(state?.again ?? [])];
    this.unsaved = new UnsavedRows(state?.chunks ?? 0);
    this.pausedBecause = state?.pausedBecause ?? null;
    this.endedEarly = state?.endedEarly ?? null;
    this.watch = new InfraWatch(input.pauseAtInfraShare, state?.recentOutcomes ?? []);
    this.#sums = state?.sums ?? {
      ...{ outcomes: zeroCount(outcomes), leftOut: zeroCount(leftOutKinds) },
      ...{ retried: 0, counted: 0, passed: 0, rewards: 0 },
    };
  }

  begin(plan: SweepPlan): void {
    this.#plan = plan;
  }

  get begun(): boolean {
    return this.#plan !== null;
  }

  /** Of a sweep that has begun. */
  get plan(): SweepPlan {
    if (this.#plan === null) throw new Error('expected a plan, got none; begin first');
    return this.#plan;
  }

  get policyVersion(): number | null {
    return this.#plan?.policyVersion ?? null;
  }

  /** What is evaluated, as far as it is known. */
  get pin(): Pin {
    const { policyVersion = null, upstream } = this.#plan ?? {};
    return { policyVersion, ...(upstream !== undefined && { upstream }) };
  }

  get tasks(): number {
    return this.#plan?.tasks ?? 0;
  }

  get sums(): SweepSums {
    const sums = this.#sums;
    if (this.endedEarly === null && !this.cancelling) return sums;
    // Nothing is made again any more: what was to be has ended as what it was.
    const infra = this.#again.filter(([, retry]) => retry > 0).length;
    return {
      ...sums,
      retried: sums.retried - infra,
      outcomes: { ...sums.outcomes, infra: sums.outcomes.infra + infra },
      leftOut: { ...sums.leftOut, infra: sums.leftOut.infra + infra },
    };
  }

  get planned(): number {
    return this.tasks * this.#input.attempts;
  }

  /** Nothing is in flight, and nothing is left to be started. */
  get done(): boolean {
    return this.inFlight.size === 0 && !this.#anyLeft;
  }

  get #anyLeft(): boolean {
    return this.endedEarly === null && (this.#again.length > 0 || this.#next < this.planned);
  }

  /** There is something to be started, and room for it. */
  get anyToStart(): boolean {
    return this.#anyLeft && this.inFlight.size < this.#input.concurrency;
  }

  /** What is to be started now, at most `atMost`: first what has to be made again. */
  take(atMost: number): Numbered[] {
    const taken: Numbered[] = [];
    const room = Math.min(atMost, this.#input.concurrency - this.inFlight.size);
    while (taken.length < room && this.#anyLeft) {
      const again = this.#again.shift();
      const numbered = again ?? ([this.#next, 0] as const);
      if (again === undefined) this.#next += 1;
      this.inFlight.set(...numbered);
      taken.push(numbered);
    }
    return taken;
  }

  /** A rollout has ended. A second report of the same one changes nothing. */
  settle(number: number, row: SweepRow): void {
    if (this.inFlight.get(number) !== row.retry) return;
    this.inFlight.delete(number);
    this.adopted.delete(number);
    this.changes += 1;
    this.unsaved.add(row);
    this.watch.see(row.outcome);
    if (row.outcome === 'infra' && row.retry < this.#input.infraRetries && !this.cancelling) {
      this.#again.push([number, row.retry + 1]);
      this.#sums = { ...this.#sums, retried: this.#sums.retried + 1 };
    } else {
      this.#count(row);
    }
  }

  /** It was taken and can't be started now. */
  notStarted(numbered: Numbered): void {
    this.inFlight.delete(numbered[0]);
    this.#again.push(numbered);
    this.changes += 1;
  }

  #count(row: SweepRow): void {
    // Where the server could not say what is in service, the first rollout does.
    if (this.policyVersion === null && row.versions !== null) {
      this.#plan = { ...this.plan, policyVersion: row.versions[0] };
    }
    const flags = addFlags(this.#sums.flags ?? noFlags, countFlags([row.flags]));
    const sums = { ...this.#sums, flags };
    const ended = { ...sums.outcomes, [row.outcome]: sums.outcomes[row.outcome] + 1 };
    const why = whyLeftOut(row, this.pin);
    if (why !== null) {
      this.#sums = { ...sums, outcomes: ended, leftOut: { ...sums.leftOut, [why]: sums.leftOut[why] + 1 } };
      if (why === 'other-version') this.endedEarly ??= this.#moved(row);
      return;
    }
    const reward = row.reward ?? 0;
    this.#sums = {
      ...{ outcomes: ended, leftOut: sums.leftOut, retried: sums.retried, flags },
      counted: sums.counted + 1,
      passed: sums.passed + (reward >= this.#input.passAt ? 1 : 0),
      rewards: sums.rewards + reward,
    };
  }

  #moved({ versions, workflowId, model }: SweepRow): string {
    const { upstream } = this.pin;
    if (upstream !== undefined)
      return `${upstream.name} is another model now: ${upstream.model} is evaluated, and ${workflowId} was sampled by ${model}`;
    const range = [...new Set(versions)].join(' to ');
    return `the engine moved on: version ${this.policyVersion} is evaluated, and ${workflowId} was sampled by ${range}`;
  }

  state(): SweepState {
    return {
      plan: this.plan,
      startedAt: this.startedAt,
      next: this.#next,
      inFlight: [...this.inFlight],
      again: this.#again,
      chunks: this.unsaved.chunks,
      sums: this.#sums,
      pausedBecause: this.pausedBecause,
      recentOutcomes: this.watch.recent,
      endedEarly: this.endedEarly,
    };
  }
}
