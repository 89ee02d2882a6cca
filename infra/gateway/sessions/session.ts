import { setTimeout as sleep } from 'node:timers/promises';
import { sampledTokensOf } from '../../../workflows/algorithms/turns.ts';
import type { Conversation } from '../../kits/chat-tokens/index.ts';
import type { TurnRecord } from '../branches/turn-record.ts';
import type { OpenSession, SessionStatus } from '../control.ts';
import { limits } from '../limits.ts';
import { askedTokens, type ModelRequest } from '../model-request.ts';
import { Refusal } from '../refusal.ts';
import type { PlannedTurn, Speaker } from '../turns/backend.ts';
import { createPolicySpeaker, type PolicySpeakerDeps } from '../turns/policy-backend.ts';
import type { RunningTurn, Turn } from '../turns/turn.ts';
import { createUpstreamSpeaker, type UpstreamSpeakerDeps } from '../turns/upstream-backend.ts';
import type { Flag, Journal, JournalRecord } from './journal.ts';
import { createFlags, type Ending, type Flagged, type Flags, failureFlag } from './request-failures.ts';

/** The model calls of one rollout. Turns are ordered by their journal records; a turn that has none never happened. */
export interface Session {
  readonly opened: OpenSession;
  readonly turns: readonly TurnRecord[];
  readonly forks: number;
  /** Requests that came again and got the turn that was there; what a killed process counted is lost. */
  readonly retries: number;
  /** How many requests ended so; none that was answered in the end. */
  flagged(flag: Flag): number;
  /** Whether it ended at the context's length: a request was too long, and no turn began after it. One that was compacted did. */
  readonly overflowed: boolean;
  /** Whether the engine or the gateway failed a request at the end: none that it failed was answered, or followed by a turn. */
  readonly cutOff: boolean;
  readonly openedAt: number;
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

export interface SessionDeps extends PolicySpeakerDeps, UpstreamSpeakerDeps {
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
  readonly openedAt: number;
  readonly #deps: SessionDeps;
  readonly #journal: Journal;
  readonly #speaker: Speaker;
  readonly #flags: Flags;
  readonly #running = new Map<string, RunningTurn<TurnRecord>>();
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
    this.#flags = createFlags(journal, () => this.turns);
    const { upstream } = opened;
    this.#speaker =
      upstream === undefined ? createPolicySpeaker(deps, opened) : createUpstreamSpeaker(deps, opened, upstream);
    for (const record of records) this.#restore(record);
    const first = records[0];
    this.openedAt = first?.kind === 'open' ? first.at : Date.now();
    this.#lastActivityAt = this.#speaker.turns.at(-1)?.endedAt ?? this.openedAt;
  }

  #restore(record: JournalRecord): void {
    if (record.kind === 'turn') this.#speaker.restore(record.turn);
    else if (record.kind === 'flag') this.#flags.restore(record);
    else if (record.kind === 'rest') this.#retries = this.#journaledRetries = record.retries;
    else if (record.kind === 'close') {
      this.#closed = new Refusal('session-closed', 'this session is closed');
      this.#retries = this.#journaledRetries = record.retries ?? 0;
    }
  }

  get turns(): readonly TurnRecord[] {
    return this.#speaker.turns;
  }

  get forks(): number {
    return this.#speaker.forks;
  }

  get retries(): number {
    return this.#retries;
  }

  flagged(flag: Flag): number {
    return this.#unanswered(flag).length;
  }

  get overflowed(): boolean {
    return this.#unanswered('context-overflow').some((overflow) => !this.#flags.wentOn(overflow));
  }

  get cutOff(): boolean {
    const failed = [...this.#unanswered('engine-failure'), ...this.#unanswered('gateway-failure')];
    return failed.some((failure) => !this.#flags.wentOn(failure));
  }

  #unanswered(flag: Flag): readonly Flagged[] {
    return this.#flags.of(flag).filter(({ key }) => this.#speaker.answered(key) === null);
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
    // A flag that could not be written is in this memory alone.
    return this.#usedAt < since && this.#running.size === 0 && !this.#flags.unwritten;
  }

  async ask(request: ModelRequest): Promise<Turn<TurnRecord>> {
    this.#checkOpen();
    this.#lastActivityAt = Date.now();
    const planned = this.#speaker.plan(request);
    try {
      return await this.#answer(request, planned);
    } catch (error) {
      // No turn runs yet that would tell of it.
      await this.#noteFailure({ abandoned: false, held: false }, planned.key, error);
      throw error;
    }
  }

  async #answer(request: ModelRequest, planned: PlannedTurn): Promise<Turn<TurnRecord>> {
    // What is cheap goes first: only what is given again or begins is rendered.
    const answered = this.#speaker.answered(planned.key);
    if (answered !== null && !this.#wantsMore(request, answered)) {
      this.#retries += 1;
      return planned.replay(answered, this.openedAt);
    }
    const joined = this.#running.get(planned.key);
    if (joined !== undefined && !joined.abandoned) {
      this.#retries += 1;
      return joined;
    }
    const reached = this.#limitReached();
    // Nothing is waited for between the look at what runs and the start: of two equal requests the second joins.
    if (reached === null) return this.#start(planned);
    if (reached.kind === 'turn-limit' || reached.kind === 'token-budget')
      await this.#flags.add(reached.kind, planned.key);
    throw reached;
  }

  /** A reply was cut, and the client asks again with more room: that is another request. */
  #wantsMore(request: ModelRequest, answered: TurnRecord): boolean {
    if (answered.finishReason !== 'length' || answered.cutShort === true) return false;
    return askedTokens(request, this.opened.sampling) > sampledTokensOf(answered);
  }

  countTokens(conversation: Conversation): number {
    this.#checkOpen();
    return this.#speaker.countTokens(conversation);
  }

  #checkOpen(): void {
    if (this.#closed !== null) throw this.#closed;
    if (Date.now() >= this.opened.expiresAt) throw new Refusal('session-closed', 'this session has expired');
  }

  #limitReached(): Refusal | null {
    const { maxTurns, maxSampledTokens = Number.POSITIVE_INFINITY } = this.opened;
    if (this.turns.length + this.#running.size >= maxTurns) {
      return new Refusal('turn-limit', `the limit of ${maxTurns} model calls is reached; stop`);
    }
    const sampled = this.turns.reduce((sum, turn) => sum + sampledTokensOf(turn), 0);
    if (sampled >= maxSampledTokens) {
      return new Refusal('token-budget', `the budget of ${maxSampledTokens} sampled tokens is used up; stop`);
    }
    if (this.#running.size < limits.turnsAtOnce) return null;
    const running = `${this.#running.size} model calls are running at once`;
    return new Refusal('too-many-turns', `${running}; wait for one to end`);
  }

  #start(planned: PlannedTurn): Turn<TurnRecord> {
    const { key } = planned;
    const turn = planned.start({
      createdAt: this.openedAt,
      commit: (make, add, signal) => this.#commit(make, add, signal),
      overflow: () => this.#flags.add('context-overflow', key),
    });
    this.#running.set(key, turn);
    const leave = (): void => {
      if (this.#running.get(key) === turn) this.#running.delete(key);
    };
    turn.result.then(leave, (error) => {
      leave();
      return this.#noteFailure(turn, key, error);
    });
    return turn;
  }

  async #noteFailure(turn: Ending, key: string, error: unknown): Promise<void> {
    const flag = failureFlag(turn, error);
    if (flag !== null) await this.#flags.add(flag, key).catch(() => {});
  }

  /** One at a time: a turn's index is its place in the journal. */
  #commit(
    make: (index: number) => TurnRecord,
    add: (turn: TurnRecord) => void,
    signal: AbortSignal,
  ): Promise<TurnRecord> {
    const committed = this.#committing.then(async () => {
      signal.throwIfAborted();
      const turn = make(this.turns.length);
      await this.#journal.append({ kind: 'turn', turn });
      add(turn);
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
    await this.#flags.write();
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
      await this.#flags.write();
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

export function smallestVersion(turns: readonly TurnRecord[]): number | null {
  const versions = turns.flatMap((turn) => turn.versions.map(({ version }) => version));
  return versions.length === 0 ? null : versions.reduce((left, right) => Math.min(left, right));
}
