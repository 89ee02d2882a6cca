import type { ReplyEvent } from '../../kits/chat-tokens/index.ts';
import { GatewayError } from '../gateway-error.ts';
import type { Delta } from '../model-call.ts';
import { createReplyStream } from './reply-stream.ts';
import { beginTiming, type Timing } from './timing.ts';

/** A running turn, or the replay of a finished one. Clients that send the same request follow the same turn. */
export interface ReplyingTurn<Result> {
  readonly key: string;
  /** The time in the reply's head, which is the same at every replay. */
  readonly createdAt: number;
  /** The length of the prompt; 0 when it is unknown until the model has answered. */
  readonly promptTokens: number;
  /**
   * Yields the deltas until the turn has ended, successfully or not; those that are there already come together. From the first
   * call on, deltas cannot be taken back.
   */
  deltas(): AsyncIterable<readonly Delta[]>;
  readonly result: Promise<Result>;
  /** Registers a client. The returned function says that it left; the turn is abandoned when the last client leaves. */
  follow(): () => void;
}

export interface RunningTurn<Result> extends ReplyingTurn<Result> {
  /** Whether the turn was cancelled; a new request needs a new turn. */
  readonly abandoned: boolean;
  /**
   * Whether the turn waits for an engine that failed and has sent nothing for it since. Distinguishes an outage from a slow
   * engine when the turn is cancelled.
   */
  readonly waiting: boolean;
  /** Tells the listener when the turn begins to wait for a slot, a paused engine or one that is away, and when it is sampled. */
  watchHeld(listener: (isHeld: boolean) => void): void;
  cancel(reason: GatewayError): void;
}

/** Receives the reply while it is being sampled. */
export interface ReplySink {
  readonly push: (event: ReplyEvent) => void;
  /** Starts the reply over; all events are pushed again. */
  readonly rewind: () => void;
  /** Notes that the engine failed and is retried, or that it has sent something again. */
  readonly setWaiting: (isWaiting: boolean) => void;
  /** Notes whether an engine is waited for, whatever the reason. */
  readonly setHeld: (isHeld: boolean) => void;
}

export interface TurnInput<Sampled, Result> extends Pick<ReplyingTurn<Result>, 'key' | 'createdAt' | 'promptTokens'> {
  /** Samples the whole reply. */
  readonly sample: (sink: ReplySink, signal: AbortSignal) => Promise<Sampled>;
  /** Makes the turn durable. Afterwards the turn has happened, even if no client is left. */
  readonly commit: (sampled: Sampled, timing: Timing, signal: AbortSignal) => Promise<Result>;
}

/** Starts a turn: samples its reply, then commits it. */
export function startTurn<Sampled, Result>(input: TurnInput<Sampled, Result>): RunningTurn<Result> {
  const { key, createdAt, promptTokens, sample, commit } = input;
  const timing = beginTiming();
  const abort = new AbortController();
  const reply = createReplyStream();
  const grown = createSignal();
  let followers = 0;
  let committing = false;
  let waiting = false;
  let onHeld: (isHeld: boolean) => void = () => {};

  async function run(): Promise<Result> {
    const sink: ReplySink = {
      push(event) {
        reply.push(event);
        grown.notify();
      },
      rewind: () => reply.rewind(),
      setWaiting(isWaiting) {
        waiting = isWaiting;
      },
      setHeld: (isHeld) => onHeld(isHeld),
    };
    const sampled = await sample(sink, abort.signal);
    waiting = false;
    reply.end();
    committing = true;
    return commit(sampled, timing, abort.signal);
  }

  const result = run()
    .catch((error) => {
      throw abort.signal.aborted ? abort.signal.reason : error;
    })
    .finally(() => grown.close());
  // The followers handle the failure; without any follower, it must not count as an unhandled rejection.
  result.catch(() => {});
  return {
    key,
    createdAt,
    promptTokens,
    result,
    get abandoned() {
      return abort.signal.aborted;
    },
    get waiting() {
      return waiting;
    },
    watchHeld(listener) {
      onHeld = listener;
    },
    deltas() {
      reply.observe();
      return grown.each(reply.deltas);
    },
    follow() {
      followers += 1;
      return () => {
        followers -= 1;
        if (followers === 0 && !committing) abort.abort(new GatewayError('internal', 'the client disconnected'));
      };
    },
    cancel: (reason) => abort.abort(reason),
  };
}

/** Replays a finished turn. `replay` pushes the events of the reply in the same pieces as before. */
export function replayTurn<Result>(
  known: Pick<ReplyingTurn<Result>, 'key' | 'createdAt' | 'promptTokens'>,
  replay: (push: ReplySink['push']) => void,
  result: Result,
): ReplyingTurn<Result> {
  return {
    ...known,
    result: Promise.resolve(result),
    async *deltas() {
      const reply = createReplyStream();
      replay(reply.push);
      yield reply.deltas;
    },
    follow: () => () => {},
  };
}

/** Wakes the readers of a growing list. */
function createSignal() {
  let closed = false;
  let waiting: (() => void)[] = [];
  const notify = (): void => {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  };
  return {
    notify,
    close() {
      closed = true;
      notify();
    },
    async *each<Item>(list: readonly Item[]): AsyncIterable<readonly Item[]> {
      for (let at = 0; ; ) {
        const added = list.slice(at);
        at = list.length;
        if (added.length > 0) yield added;
        else if (closed) return;
        else await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
  };
}
