import { Refusal } from './refusal.ts';
import type { ReplyEvent } from './rendering/tools/parser.ts';

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
}

export function createSpeech(): Speech {
  const deltas: Delta[] = [];
  let observed = false;
  let expected: Delta[] = [];

  /** Returns what of the text is new. */
  function matchSent({ kind, text }: Delta): string {
    let rest = text;
    while (rest !== '') {
      const [next, ...others] = expected;
      if (next === undefined) return rest;
      const length = Math.min(rest.length, next.text.length);
      if (next.kind !== kind || next.text.slice(0, length) !== rest.slice(0, length)) {
        throw new Refusal('engine-unavailable', 'the engine was lost while it replied; send the request again');
      }
      rest = rest.slice(length);
      expected = length === next.text.length ? others : [{ kind: next.kind, text: next.text.slice(length) }, ...others];
    }
    return rest;
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
      if (observed) expected = [...deltas];
      else deltas.length = 0;
    },
  };
}
