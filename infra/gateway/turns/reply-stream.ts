import type { ReplyEvent } from '../../kits/chat-tokens/index.ts';
import { Refusal } from '../refusal.ts';

/** What may reach the agent while the model still samples; tool calls wait until the turn is journaled. */
export interface Delta {
  readonly kind: 'text' | 'reasoning';
  readonly text: string;
}

/** What the model has said in this turn so far, as it may be sent on. */
export interface Speech {
  /** Grows; once observed, what is in it stays. */
  readonly deltas: readonly Delta[];
  /** Deltas may have been sent from now on: they can't be taken back. */
  observe(): void;
  readonly say: (event: ReplyEvent) => void;
  /**
   * The model begins again, since an engine died and its tokens with it. What it says now has to begin with what was
   * sent already (the same weights and seed say the same); throws a Refusal when it does not, so that the client asks anew.
   */
  rewind(): void;
  /** The model has said all. Throws a Refusal when more than that was sent already. */
  end(): void;
}

export function createSpeech(): Speech {
  const deltas: Delta[] = [];
  let observed = false;
  /** What was sent before the rewind, and how much of it was said again. */
  let sent: readonly Delta[] = [];
  let index = 0;
  let offset = 0;

  /** Returns what of the text is new. */
  function matchSent({ kind, text }: Delta): string {
    let at = 0;
    for (let next = sent[index]; next !== undefined && at < text.length; next = sent[index]) {
      const length = Math.min(text.length - at, next.text.length - offset);
      if (next.kind !== kind || next.text.slice(offset, offset + length) !== text.slice(at, at + length)) throw lost();
      at += length;
      offset += length;
      if (offset < next.text.length) break;
      index += 1;
      offset = 0;
    }
    return text.slice(at);
  }

  return {
    deltas,
    observe() {
      observed = true;
    },
    say(event) {
      if (event.kind !== 'text' && event.kind !== 'reasoning') return;
      const text = matchSent(event);
      if (text !== '') deltas.push({ kind: event.kind, text });
    },
    rewind() {
      if (observed) sent = [...deltas];
      else deltas.length = 0;
      index = 0;
      offset = 0;
    },
    end() {
      if (index < sent.length) throw lost();
    },
  };
}

const lost = (): Refusal =>
  new Refusal('engine-unavailable', 'the engine was lost while it replied; send the request again');
