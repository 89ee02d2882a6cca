import type { ReplyEvent } from '../../kits/chat-tokens/index.ts';
import { Refusal } from '../refusal.ts';
import { createSpeech, type Delta } from './reply-stream.ts';

/** A turn on its way, or a finished one that is given again: clients that ask the same thing follow the same turn. */
export interface Turn<Result> {
  readonly key: string;
  /** Goes into the reply's head, which has to be the same whenever the turn is given again. */
  readonly createdAt: number;
  /** As far as it is known before the model has answered; 0: it is not. */
  readonly promptTokens: number;
  /** The first call after which deltas can't be taken back. Ends when the turn has ended, well or not. */
  deltas(): AsyncIterable<Delta>;
  /** Rejects with a Refusal. */
  readonly result: Promise<Result>;
  /** A client waits; the returned function says that it left. The turn is dropped when the last one leaves. */
  follow(): () => void;
}

export interface RunningTurn<Result> extends Turn<Result> {
  /** It will come to nothing: whoever asks now needs another. */
  readonly abandoned: boolean;
  /** It is held: the engine failed, and has said nothing for it since. Tells an outage from a slow engine when the turn is cancelled. */
  readonly held: boolean;
  cancel(reason: Refusal): void;
}

/** Where what a model says goes to while it says it. */
export interface Mouth {
  readonly say: (event: ReplyEvent) => void;
  /** The model begins again. */
  readonly rewind: () => void;
  /** The engine failed, and is tried again until the hold is over; or it is back, and has said something. */
  readonly hold: (isHeld: boolean) => void;
}

export interface TurnInput<Said, Result> extends Pick<Turn<Result>, 'key' | 'createdAt' | 'promptTokens'> {
  /** Lets the model say all that it has to say; throws a Refusal. */
  readonly speak: (mouth: Mouth, signal: AbortSignal) => Promise<Said>;
  /** Makes the turn durable; after it the turn has happened, whoever still listens. */
  readonly commit: (said: Said, startedAt: number, signal: AbortSignal) => Promise<Result>;
}

export function startTurn<Said, Result>(input: TurnInput<Said, Result>): RunningTurn<Result> {
  const { key, createdAt, promptTokens, speak, commit } = input;
  const startedAt = Date.now();
  const abort = new AbortController();
  const speech = createSpeech();
  const bell = createBell();
  let followers = 0;
  let committing = false;
  let held = false;

  async function run(): Promise<Result> {
    const mouth: Mouth = {
      say: (event) => {
        speech.say(event);
        bell.ring();
      },
      rewind: () => speech.rewind(),
      hold: (isHeld) => {
        held = isHeld;
      },
    };
    const said = await speak(mouth, abort.signal);
    held = false;
    speech.end();
    committing = true;
    return commit(said, startedAt, abort.signal);
  }

  const result = run()
    .catch((error) => {
      throw abort.signal.aborted ? abort.signal.reason : error;
    })
    .finally(() => bell.close());
  // Whoever follows the turn hears of its failure; when nobody does any more, nobody has to.
  result.catch(() => {});
  return {
    ...{ key, createdAt, promptTokens, result },
    get abandoned() {
      return abort.signal.aborted;
    },
    get held() {
      return held;
    },
    deltas() {
      speech.observe();
      return bell.each(speech.deltas);
    },
    follow() {
      followers += 1;
      return () => {
        followers -= 1;
        if (followers === 0 && !committing) abort.abort(new Refusal('internal', 'the client went away'));
      };
    },
    cancel: (reason) => abort.abort(reason),
  };
}

/** A finished turn, given again: `retell` says it in the very same pieces. */
export function replayTurn<Result>(
  known: Pick<Turn<Result>, 'key' | 'createdAt' | 'promptTokens'>,
  retell: (say: Mouth['say']) => void,
  result: Result,
): Turn<Result> {
  return {
    ...known,
    result: Promise.resolve(result),
    async *deltas() {
      const speech = createSpeech();
      retell(speech.say);
      yield* speech.deltas;
    },
    follow: () => () => {},
  };
}

/** Wakes whoever waits for a list to grow. */
function createBell() {
  let closed = false;
  let waiting: (() => void)[] = [];
  const ring = (): void => {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  };
  return {
    ring,
    close() {
      closed = true;
      ring();
    },
    async *each<Item>(list: readonly Item[]): AsyncIterable<Item> {
      for (let at = 0; ; ) {
        const item = list[at];
        if (item !== undefined) {
          at += 1;
          yield item;
        } else if (closed) return;
        else await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
  };
}
