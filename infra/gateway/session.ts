import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../engine/engine.ts';
import type { ContextLength } from './context-length.ts';
import type { OpenSession, SessionStatus } from './control.ts';
import type { Conversation } from './conversation.ts';
import type { Flag, Journal, JournalRecord } from './journal.ts';
import { createLedger, type Ledger, type Plan } from './ledger.ts';
import { limits } from './limits.ts';
import type { Listening } from './listener.ts';
import type { ModelRequest } from './model-request.ts';
import { ContextOverflow, Refusal, refusalOf } from './refusal.ts';
import type { Model } from './rendering/model.ts';
import { deriveSeed, type SamplingRequest } from './sampling.ts';
import { type RunningTurn, replayTurn, type Spoken, startTurn, type Turn } from './turn.ts';
import { recordOf, type TurnRecord } from './turn-record.ts';

/** The model calls of one rollout. Turns are ordered by their journal records; a turn that has none never happened. */
export interface Session {
  readonly opened: OpenSession;
  readonly turns: readonly TurnRecord[];
  readonly forks: number;
  /** Requests that came again and got the turn that was there; what a killed process counted is lost. */
  readonly retries: number;
  /** How many requests ended so; none that was answered in the end. */
  flagged(flag: Flag): number;
  status(): SessionStatus;
  /** Somebody is about to use it. */
  touch(): void;
  /** Whether it does nothing, and nobody has used it since then. */
  isIdle(since: number): boolean;
  /**
   * The turn of a request. The same conversation is the same turn, whichever connection it comes on: a running one is
   * joined, a finished one is given again, also by a gateway that has only the journal. Throws a Refusal.
   */
  ask(request: ModelRequest): Promise<Turn<TurnRecord>>;
  /** How many tokens the prompt of a conversation has; makes no turn. Throws a Refusal. */
  countTokens(conversation: Conversation): number;
  /** Refuses further turns, cancels running ones and waits for them. */
  close(reason: Refusal): Promise<void>;
  /** Gives running turns that long to end, then lets go of the journal's file; the session can be loaded again from it. */
  release(drainMs: number): Promise<void>;
}

export interface SessionDeps {
  readonly engine: Engine;
  readonly model: Model;
  readonly contextLength: ContextLength;
  readonly holdMs: number;
  readonly onTurn: (session: string, turn: TurnRecord) => void;
}

export function createSession(
  deps: SessionDeps,
  journal: Journal,
  opened: OpenSession,
  records: readonly JournalRecord[],
): Session {
  return new LiveSession(deps, journal, opened, records);
}

class LiveSession implements Session {
  readonly opened: OpenSession;
  readonly #deps: SessionDeps;
  readonly #journal: Journal;
  readonly #ledger: Ledger;
  readonly #flags = new Map<string, Flag>();
  readonly #running = new Map<string, RunningTurn<TurnRecord>>();
  readonly #openedAt: number;
  #closed: Refusal | null = null;
  #retries = 0;
  #journaledRetries = 0;
  #lastActivityAt: number;
  #usedAt = Date.now();
  #committing: Promise<unknown> = Promise.resolve();

  constructor(deps: SessionDeps, journal: Journal, opened: OpenSession, records: readonly JournalRecord[]) {
    this.opened = opened;
    this.#deps = deps;
    this.#journal = journal;
    this.#ledger = createLedger(deps.model);
    for (const record of records) this.#restore(record);
    const first = records[0];
    this.#openedAt = first?.kind === 'open' ? first.at : Date.now();
    this.#lastActivityAt = this.#ledger.turns.at(-1)?.endedAt ?? this.#openedAt;
  }

  #restore(record: JournalRecord): void {
    if (record.kind === 'turn') this.#ledger.add(record.turn);
    else if (record.kind === 'flag') this.#flags.set(record.key, record.flag);
    else if (record.kind === 'rest') this.#retries = this.#journaledRetries = record.retries;
    else if (record.kind === 'close') {
      this.#closed = new Refusal('session-closed', 'this session is closed');
      this.#retries = this.#journaledRetries = record.retries ?? 0;
    }
  }

  get turns(): readonly TurnRecord[] {
    return this.#ledger.turns;
  }

  get forks(): number {
    return this.#ledger.forks;
  }

  get retries(): number {
    return this.#retries;
  }

  flagged(flag: Flag): number {
    return [...this.#flags].filter(([key, kind]) => kind === flag && this.#ledger.answered(key) === null).length;
  }

  status(): SessionStatus {
    return {
      state: this.#closed === null ? 'open' : 'closed',
      turns: this.turns.length,
      inFlight: this.#running.size,
      minVersion: smallestVersion(this.turns),
      lastActivityAt: this.#lastActivityAt,
    };
  }

  touch(): void {
    this.#usedAt = Date.now();
  }

  isIdle(since: number): boolean {
    return this.#usedAt < since && this.#running.size === 0;
  }

  async ask(request: ModelRequest): Promise<Turn<TurnRecord>> {
    this.#checkOpen();
    this.#lastActivityAt = Date.now();
    const plan = this.#ledger.plan(request.conversation);
    const listening = listeningOf(plan, this.#deps.model, request);
    const answered = this.#ledger.answered(plan.key);
    if (answered !== null && !this.#wantsMore(request, answered)) {
      this.#retries += 1;
      return replayTurn(listening, this.#openedAt, answered.sampledIds, answered);
    }
    const joined = this.#running.get(plan.key);
    if (joined !== undefined && !joined.abandoned) {
      this.#retries += 1;
      return joined;
    }
    const reached = this.#limitReached();
    // Nothing is waited for between the look at what runs and the start: of two equal requests the second joins.
    if (reached === null) return this.#start(plan, listening, request);
    if (reached.kind === 'turn-limit') await this.#flag('turn-limit', plan.key);
    throw reached;
  }

  /** A reply was cut, and the client asks again with more room: that is another request. */
  #wantsMore({ maxTokens }: ModelRequest, { finishReason, sampledIds }: TurnRecord): boolean {
    const { maxTokensPerTurn } = this.opened.sampling;
    return finishReason === 'length' && Math.min(maxTokens ?? maxTokensPerTurn, maxTokensPerTurn) > sampledIds.length;
  }

  countTokens(conversation: Conversation): number {
    this.#checkOpen();
    return this.#ledger.plan(conversation).prompt.ids.length;
  }

  #checkOpen(): void {
    if (this.#closed !== null) throw this.#closed;
    if (Date.now() >= this.opened.expiresAt) throw new Refusal('session-closed', 'this session has expired');
  }

  #limitReached(): Refusal | null {
    const { maxTurns } = this.opened;
    if (this.turns.length + this.#running.size >= maxTurns) {
      return new Refusal('turn-limit', `the limit of ${maxTurns} model calls is reached; stop`);
    }
    if (this.#running.size < limits.turnsAtOnce) return null;
    const running = `${this.#running.size} model calls are running at once`;
    return new Refusal('too-many-turns', `${running}; wait for one to end`);
  }

  /** However often an agent knocks, a request is flagged once; and there is room for few limits that were reached. */
  async #flag(flag: Flag, key: string): Promise<void> {
    if (this.#flags.get(key) === flag || this.#flags.size >= limits.flags) return;
    this.#flags.set(key, flag);
    await this.#journal.append({ kind: 'flag', flag, key, at: Date.now() });
  }

  #start(plan: Plan, listening: Listening, request: ModelRequest): Turn<TurnRecord> {
    const turn = startTurn<TurnRecord>({
      listening,
      createdAt: this.#openedAt,
      prepare: (signal) => this.#prepare(plan, request, signal),
      commit: (spoken, startedAt, signal) => this.#commit(plan, spoken, startedAt, signal),
    });
    this.#running.set(plan.key, turn);
    const leave = (): void => {
      if (this.#running.get(plan.key) === turn) this.#running.delete(plan.key);
    };
    turn.result.then(leave, async (error) => {
      leave();
      const { kind } = refusalOf(error);
      if (kind === 'engine-unavailable' || kind === 'engine-invalid')
        await this.#flag('engine-failure', plan.key).catch(() => {});
    });
    return turn;
  }

  async #prepare(plan: Plan, request: ModelRequest, signal: AbortSignal) {
    const { engine, model, holdMs, contextLength } = this.#deps;
    const { sampling, seed, session, policyVersion } = this.opened;
    const length = plan.prompt.ids.length;
    const room = (await contextLength.wait(signal)) - length;
    if (room < 1) {
      await this.#flag('context-overflow', plan.key);
      throw new ContextOverflow(length, length + room);
    }
    return {
      engine,
      session,
      name: `${session}-${plan.key.slice(0, 16)}`,
      prompt: plan.prompt,
      maxTokens: Math.min(room, sampling.maxTokensPerTurn, request.maxTokens ?? room),
      sampling,
      seed: deriveSeed(seed, plan.key),
      stopTokenIds: model.stopTokenIds,
      holdMs,
      ...(policyVersion !== undefined && { policyVersion }),
    } satisfies Omit<SamplingRequest, 'onIds' | 'onRewind'>;
  }

  /** One at a time: a turn's index is its place in the journal. */
  #commit(plan: Plan, spoken: Spoken, startedAt: number, signal: AbortSignal): Promise<TurnRecord> {
    const committed = this.#committing.then(async () => {
      signal.throwIfAborted();
      const turn = recordOf(plan, spoken, startedAt, this.turns.length);
      await this.#journal.append({ kind: 'turn', turn });
      this.#ledger.add(turn, plan);
      this.#lastActivityAt = turn.endedAt;
      this.touch();
      this.#deps.onTurn(this.opened.session, turn);
      return turn;
    });
    this.#committing = committed.catch(() => {});
    return committed;
  }

  async close(reason: Refusal): Promise<void> {
    const wasOpen = this.#closed === null;
    this.#closed ??= reason;
    await this.#cancelRunning(reason);
    if (!wasOpen) return;
    const retries = this.#retries === 0 ? {} : { retries: this.#retries };
    await this.#journal.append({ kind: 'close', at: Date.now(), ...retries });
    this.#journaledRetries = this.#retries;
  }

  async release(drainMs: number): Promise<void> {
    const closing = new Refusal('gateway-closing', 'the gateway restarts; send the request again');
    this.#closed ??= closing;
    const drained = Promise.allSettled([...this.#running.values()].map(({ result }) => result));
    await within(drainMs, drained);
    await this.#cancelRunning(closing);
    try {
      if (this.#retries === this.#journaledRetries) return;
      await this.#journal.append({ kind: 'rest', at: Date.now(), retries: this.#retries });
    } finally {
      await this.#journal.close();
    }
  }

  async #cancelRunning(reason: Refusal): Promise<void> {
    const turns = [...this.#running.values()];
    for (const turn of turns) turn.cancel(reason);
    await Promise.allSettled(turns.map(({ result }) => result));
  }
}

/** Waits for the work, but not longer. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const timeout = new AbortController();
  const late = sleep(ms, undefined, { signal: timeout.signal }).catch(() => {});
  await Promise.race([work, late]);
  timeout.abort();
}

function listeningOf(plan: Plan, model: Model, { conversation }: ModelRequest): Listening {
  return { plan, model, tools: conversation.tools };
}

export function smallestVersion(turns: readonly TurnRecord[]): number | null {
  const versions = turns.flatMap((turn) => turn.versions.map(({ version }) => version));
  return versions.length === 0 ? null : versions.reduce((left, right) => Math.min(left, right));
}
