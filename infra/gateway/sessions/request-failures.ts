import type { TurnRecord } from '../branches/turn-record.ts';
import { toGatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';
import type { RunningTurn } from '../turns/turn.ts';
import type { Journal, RequestFailure } from './journal.ts';

/** A failed request: its key, the reason, the time, and the number of turns at that time. */
interface FailedRequest {
  readonly failure: RequestFailure;
  readonly key: string;
  readonly at: number;
  readonly turns: number;
}

/** The state of a turn when it failed. */
export type FailedTurn = Pick<RunningTurn<unknown>, 'abandoned' | 'waiting'>;

/** The effect of failed requests on a session. One that was answered later has none. */
export interface UnansweredRequests {
  /** Returns how many requests failed for this reason and were not answered later. */
  count(failure: RequestFailure): number;
  /** Whether the session ended at the context's length: a request was too long, and no turn followed, as one does after compaction. */
  readonly overflowed: boolean;
  /** Whether a failure of the engine or the gateway ended it: a request failed, and was neither answered nor followed by a turn. */
  readonly cutOff: boolean;
}

/** The failed requests of a session, by their keys. */
export interface RequestFailures extends UnansweredRequests {
  /** Adds a failure that was read from the journal. */
  restore(failed: Omit<FailedRequest, 'turns'>): void;
  /** Records a failure. A request fails once per outage, however often it is retried; and only a limited number is kept. */
  add(failure: RequestFailure, key: string): Promise<void>;
  /** Records the failure of a turn, unless it is the agent's own doing. Never rejects. */
  addOf(turn: FailedTurn, key: string, error: unknown): Promise<void>;
  /** Writes the failures that could not be written before. */
  write(): Promise<void>;
  readonly unwritten: boolean;
}

export interface RequestFailuresDeps {
  readonly journal: Pick<Journal, 'append'>;
  readonly turns: () => readonly Pick<TurnRecord, 'startedAt'>[];
  /** Whether a turn has answered the request of this key. */
  readonly isAnswered: (key: string) => boolean;
}

/**
 * Creates the failures of a session. A full disk cannot take the record of a failure: it then counts from memory, and is
 * written with the next failure or when the session is closed. If the gateway dies before that, the record is lost, and the
 * rollout is scored by what the agent left, unless the request is sent again and fails again.
 */
export function createRequestFailures({ journal, turns, isAnswered }: RequestFailuresDeps): RequestFailures {
  const failures = new Map<string, FailedRequest>();
  const unwritten = new Map<string, FailedRequest>();

  function note({ failure, key, at }: Omit<FailedRequest, 'turns'>): FailedRequest {
    const failed = { failure, key, at, turns: turns().length };
    failures.set(key, failed);
    return failed;
  }

  /** Whether a turn began after the failure. A turn that was running at that time does not count. */
  const wasFollowed = (failed: FailedRequest): boolean =>
    turns()
      .slice(failed.turns)
      .some(({ startedAt }) => startedAt >= failed.at);

  const unansweredOf = (failure: RequestFailure): readonly FailedRequest[] =>
    [...failures.values()].filter((one) => one.failure === failure && !isAnswered(one.key));

  const wasLast = (failure: RequestFailure): boolean => unansweredOf(failure).some((one) => !wasFollowed(one));

  async function write(): Promise<void> {
    for (const [name, { failure, key, at }] of [...unwritten]) {
      await journal.append({ kind: 'flag', flag: failure, key, at });
      unwritten.delete(name);
    }
  }

  async function add(failure: RequestFailure, key: string): Promise<void> {
    const known = failures.get(key);
    if (known?.failure === failure && !wasFollowed(known)) return;
    if (known === undefined && failures.size >= limits.requestFailures) return;
    unwritten.set(key, note({ failure, key, at: Date.now() }));
    await write();
  }

  return {
    count: (failure) => unansweredOf(failure).length,
    get overflowed() {
      return wasLast('context-overflow');
    },
    get cutOff() {
      return wasLast('engine-failure') || wasLast('gateway-failure');
    },
    restore: (failed) => void note(failed),
    add,
    async addOf(turn, key, error) {
      const failure = classifyFailure(turn, error);
      // It counts from memory if it cannot be written.
      if (failure !== null) await add(failure, key).catch(() => {});
    },
    write,
    get unwritten() {
      return unwritten.size > 0;
    },
  };
}

/**
 * Returns the kind of a failure that is not the agent's own doing, or null. A turn that was cancelled, because the session
 * ended or its client left, counts only if it waited for an engine that was away; and not if its request is answered later. A
 * turn that a restarting gateway cuts is retried.
 */
export function classifyFailure({ abandoned, waiting }: FailedTurn, error: unknown): RequestFailure | null {
  const { kind } = toGatewayError(error);
  if (abandoned) return waiting && kind !== 'gateway-closing' ? 'engine-failure' : null;
  if (kind === 'engine-unavailable' || kind === 'engine-invalid') return 'engine-failure';
  return kind === 'journal-unavailable' || kind === 'internal' ? 'gateway-failure' : null;
}
