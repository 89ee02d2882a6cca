import type { Conversation } from '../../kits/chat-tokens/index.ts';
import { settleWithin } from '../../time-limit.ts';
import { type TurnRecord, versionRange } from '../branches/turn-record.ts';
import type { OpenSession, SessionStatus } from '../control.ts';
import { GatewayError } from '../gateway-error.ts';
import type { ModelRequest } from '../model-call.ts';
import { type TaskFiles, taskOf } from '../tools/task-files.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import type { ModelBackend, PlannedTurn, TurnContext } from '../turns/model-backend.ts';
import { createPolicyBackend, type PolicyBackendDeps } from '../turns/policy-backend.ts';
import type { ReplyingTurn } from '../turns/turn.ts';
import { createUpstreamBackend, type UpstreamBackendDeps } from '../turns/upstream-backend.ts';
import { type AskedTurn, createAskedTurn } from './asked-turn.ts';
import { createCommit } from './commit-turns.ts';
import { type Cuts, createCuts } from './cuts.ts';
import { createFence, type Fence, type FenceDeps } from './fence.ts';
import { createHostCalls, type HostCalls } from './host-calls.ts';
import { type Journal, type JournalRecord, writeDelivered } from './journal.ts';
import { createRequestFailures, type RequestFailures, type UnansweredRequests } from './request-failures.ts';
import { createRunningTurns, type RunningTurns } from './running-turns.ts';
import { createSamples, type RequestOrigin, type Sample } from './samples.ts';
import type { OpenedFile } from './session-files.ts';
import { createExpiry, limitReached, wantsMore } from './session-limits.ts';
import { createWaits, type Waits } from './waits.ts';

/** The model calls of one rollout. The journal orders its turns; a turn without a journal record never happened. */
export interface Session {
  readonly opened: OpenSession;
  readonly turns: readonly TurnRecord[];
  readonly cuts: Pick<Cuts, 'last' | 'replaced'>;
  readonly forks: number;
  readonly hostCalls: HostCalls;
  /** Retried requests that were answered from the journal, without those that a killed process counted. */
  readonly retries: number;
  readonly failures: UnansweredRequests;
  readonly openedAt: number;
  readonly waits: Waits;
  /** Whether its lifetime is over, by a clock that does not jump. */
  readonly isExpired: () => boolean;
  status(): SessionStatus;
  /** Notes that the session is being used. */
  touch(): void;
  /** Whether the session has no running turn and was not used since that time. */
  isIdle(since: number): boolean;
  /**
   * Returns the turn of a request. A request that repeats another one has the same turn, whichever connection it arrives on: a
   * running turn is joined, a finished one is replayed, also by a gateway that has only the journal. Throws a GatewayError or
   * a TemplateRejection.
   */
  ask(request: ModelRequest, origin: RequestOrigin): Promise<AskedTurn>;
  /** Counts the tokens of a conversation's prompt, without a turn. Throws a GatewayError or a TemplateRejection. */
  countTokens(conversation: Conversation): Promise<number>;
  /** Refuses further turns, cancels running ones and waits for them. */
  close(reason: GatewayError): Promise<void>;
  /** Waits up to `drainMs` for running turns to end, then closes the journal's file. The session can be loaded again from it. */
  release(drainMs: number): Promise<void>;
}

export interface SessionDeps extends PolicyBackendDeps, UpstreamBackendDeps, FenceDeps {
  readonly toolbox: Toolbox;
  readonly taskFiles: TaskFiles;
  readonly onTurn: (session: string, turn: TurnRecord) => void;
  readonly onHostToolFailure: (session: string, tool: string, error: unknown) => void;
  readonly onCutUnwritten: (session: string, error: unknown) => void;
}

/** Creates a session from its opened journal. */
export function createSession(deps: SessionDeps, file: OpenedFile): Session {
  return new LiveSession(deps, file);
}

class LiveSession implements Session {
  readonly opened: OpenSession;
  readonly openedAt: number;
  readonly hostCalls: HostCalls;
  readonly failures: RequestFailures;
  readonly #fence: Fence;
  readonly #journal: Journal;
  readonly #backend: ModelBackend;
  readonly waits: Waits;
  readonly cuts: Cuts;
  readonly #running: RunningTurns;
  readonly isExpired: () => boolean;
  readonly #samples = createSamples();
  readonly #commit: TurnContext['commit'];
  #closed: GatewayError | null = null;
  #retries = 0;
  #journaledRetries = 0;
  #lastActivityAt: number;
  #usedAt = Date.now();

  constructor(deps: SessionDeps, { journal, opened, records }: OpenedFile) {
    this.opened = opened;
    this.isExpired = createExpiry(opened.expiresAt);
    this.#fence = createFence(deps, opened);
    this.#journal = this.#fence.guard(journal);
    this.waits = createWaits(this.#journal);
    this.#running = createRunningTurns(this.waits);
    const { upstream } = opened;
    this.#backend =
      upstream === undefined ? createPolicyBackend(deps, opened) : createUpstreamBackend(deps, opened, upstream);
    const turns = () => this.turns;
    const isAnswered = (key: string): boolean => this.#backend.answered(key) !== null;
    this.failures = createRequestFailures({ journal: this.#journal, turns, isAnswered });
    const onUnwritten = (error: unknown): void => deps.onCutUnwritten(opened.session, error);
    this.cuts = createCuts({ journal: this.#journal, turns, isAnswered, onUnwritten });
    this.#commit = createCommit({
      journal: this.#journal,
      fence: this.#fence,
      turns,
      onTurn: (turn) => {
        this.#lastActivityAt = turn.endedAt;
        this.touch();
        this.#samples.answered(turn);
        deps.onTurn(opened.session, turn);
      },
    });
    this.hostCalls = createHostCalls({
      journal: this.#journal,
      tools: deps.toolbox.find(opened.hostTools ?? []),
      context: { session: opened.session, task: taskOf(opened, deps.taskFiles) },
      turns: () => this.turns.length,
      admit: () => this.#admit(),
      onFailure: (tool, error) => deps.onHostToolFailure(opened.session, tool, error),
      onEnvironmentLost: (key) => this.failures.add('environment-failure', key),
    });
    for (const record of records) this.#restore(record);
    this.openedAt = records[0]?.kind === 'open' ? records[0].at : Date.now();
    this.#lastActivityAt = this.#backend.turns.at(-1)?.endedAt ?? this.openedAt;
  }

  #restore(record: JournalRecord): void {
    if (record.kind === 'turn') {
      this.#backend.restore(record.turn);
      this.#samples.restore(record.turn);
    } else if (record.kind === 'delivered') for (const one of record.deliveries) this.#samples.restoreDelivery(one);
    else if (record.kind === 'host-call') this.hostCalls.restore(record.call);
    else if (record.kind === 'flag') this.failures.restore({ failure: record.flag, key: record.key, at: record.at });
    else if (record.kind === 'waited') this.waits.restore(record.ms);
    else if (record.kind === 'cut') this.cuts.restore(record.turn);
    else if (record.kind === 'rest' || record.kind === 'close') {
      this.#retries = this.#journaledRetries = record.retries ?? 0;
      if (record.kind === 'close') this.#closed = new GatewayError('session-closed', 'this session is closed');
    }
  }

  get turns(): readonly TurnRecord[] {
    return this.#backend.turns;
  }

  get forks(): number {
    return this.#backend.forks;
  }

  get retries(): number {
    return this.#retries;
  }

  status(): SessionStatus {
    return {
      state: this.#closed === null ? 'open' : 'closed',
      turns: this.turns.length,
      inFlight: this.#running.count,
      minVersion: versionRange(this.turns).min,
      lastActivityAt: this.#lastActivityAt,
      waitedMs: this.waits.ms,
    };
  }

  touch(): void {
    this.#usedAt = Date.now();
  }

  isIdle(since: number): boolean {
    // A failure that could not be written exists in this memory alone.
    return this.#usedAt < since && this.#running.count === 0 && !this.hostCalls.running && !this.failures.unwritten;
  }

  async ask(request: ModelRequest, origin: RequestOrigin): Promise<AskedTurn> {
    await this.#admit();
    this.hostCalls.requireUnsubmitted();
    const oversize = await this.#backend.oversizeOf(request.conversation);
    const planned = this.#backend.plan(request);
    if (oversize !== null) {
      await this.failures.add('context-overflow', planned.key);
      throw oversize;
    }
    try {
      return await this.#answer(request, planned, origin);
    } catch (error) {
      // The turn did not start, so the handler of its result cannot note the failure.
      await this.failures.addOf({ abandoned: false, waiting: false }, planned.key, error);
      throw error;
    }
  }

  async #answer(request: ModelRequest, planned: PlannedTurn, origin: RequestOrigin): Promise<AskedTurn> {
    // Cheap checks first; a prompt is rendered only when the turn is replayed or started.
    const repeated = this.#samples.find(planned.key, origin);
    const answered = repeated && this.#backend.answered(repeated.key);
    if (repeated !== null && answered !== null && !wantsMore(request, answered, this.opened.sampling)) {
      this.#retries += 1;
      return createAskedTurn(this.#samples, planned.replay(answered, this.openedAt), { sample: repeated, origin });
    }
    const joined = repeated && this.#running.find(repeated.key);
    if (joined) {
      this.#retries += 1;
      return createAskedTurn(this.#samples, joined, { sample: repeated, origin });
    }
    // The turn of a sample that is neither running nor answered has just been given up.
    const sample = repeated !== null && answered === null ? repeated : this.#samples.next(planned.key, origin);
    const { turns, cuts } = this;
    const reached = limitReached(this.opened, { turns, running: this.#running.count, cuts: cuts.excess });
    // No await between the lookup and the start, so the second of two equal requests finds the first.
    if (reached === null) return createAskedTurn(this.#samples, this.#start(planned, sample), { sample, origin });
    this.#samples.refuse(planned.key, origin);
    if (reached.kind === 'turn-limit' || reached.kind === 'token-budget') {
      await this.failures.add(reached.kind, sample.key);
    }
    throw reached;
  }

  async countTokens(conversation: Conversation): Promise<number> {
    this.#checkOpen();
    const oversize = await this.#backend.oversizeOf(conversation);
    if (oversize !== null) throw oversize;
    return this.#backend.countTokens(conversation);
  }

  async #admit(): Promise<void> {
    await this.#fence.admit();
    this.#checkOpen();
    this.#lastActivityAt = Date.now();
  }

  #checkOpen(): void {
    this.#fence.requireLife();
    if (this.#closed !== null) throw this.#closed;
    if (this.isExpired()) throw new GatewayError('session-closed', 'this session has expired');
  }

  #start(planned: PlannedTurn, sample: Sample): ReplyingTurn<TurnRecord> {
    const { key } = sample;
    const turn = planned.start({
      createdAt: this.openedAt,
      sample,
      commit: this.#commit,
      noteCut: this.cuts.add,
      noteOverflow: () => this.failures.add('context-overflow', key),
    });
    this.#running.add(turn);
    this.#samples.begin(sample);
    // Another gateway must not take the new request for a retry of these. A journal that cannot be written fails the turn itself.
    if (sample.number > 1) writeDelivered(this.#samples, this.#journal).catch(() => {});
    turn.result.catch(async (error) => {
      if (this.#running.find(key) === undefined) this.#samples.fail(sample);
      await this.failures.addOf(turn, key, error);
    });
    return turn;
  }

  async close(reason: GatewayError): Promise<void> {
    const wasOpen = this.#closed === null;
    this.#closed ??= reason;
    await this.#cancelRunning(reason);
    await this.failures.write();
    if (!wasOpen) return;
    await this.waits.write();
    const retries = this.#retries === 0 ? {} : { retries: this.#retries };
    await this.#journal.append({ kind: 'close', at: Date.now(), ...retries });
    this.#journaledRetries = this.#retries;
  }

  async release(drainMs: number): Promise<void> {
    const closing = new GatewayError('gateway-closing', 'the gateway restarts; send the request again');
    this.#closed ??= closing;
    await settleWithin(drainMs, this.#running.ended());
    await this.#cancelRunning(closing);
    try {
      if (this.#fence.state !== 'valid') return;
      await this.failures.write();
      await writeDelivered(this.#samples, this.#journal);
      await this.waits.write();
      if (this.#retries === this.#journaledRetries) return;
      await this.#journal.append({ kind: 'rest', at: Date.now(), retries: this.#retries });
    } finally {
      await this.#journal.close();
    }
  }

  async #cancelRunning(reason: GatewayError): Promise<void> {
    await Promise.allSettled([this.#running.cancel(reason), this.hostCalls.cancel(reason)]);
    await this.cuts.written();
  }
}
