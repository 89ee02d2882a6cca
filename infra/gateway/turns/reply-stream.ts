import type { ReplyEvent } from '../../kits/chat-tokens/index.ts';
import { GatewayError } from '../gateway-error.ts';
import type { Delta } from '../model-call.ts';

/** The reply of one turn so far, as deltas that can be sent on. */
export interface ReplyStream {
  /** The deltas in order. The list grows, and once it is observed its entries stay. */
  readonly deltas: readonly Delta[];
  /** Marks the deltas as sent: from now on they cannot be taken back. */
  observe(): void;
  readonly push: (event: ReplyEvent) => void;
  /**
   * Starts the reply over, because an engine died and its tokens were lost. The new reply has to begin with the deltas that
   * were sent already (the same weights and seed sample the same); otherwise `push` throws a GatewayError that has the
   * client retry.
   */
  rewind(): void;
  /** Ends the reply. Throws a GatewayError when more was already sent than the whole reply contains. */
  end(): void;
}

export function createReplyStream(): ReplyStream {
  const deltas: Delta[] = [];
  let observed = false;
  /** The deltas that were sent before the rewind, and how much of them has been sampled again. */
  let sent: readonly Delta[] = [];
  let index = 0;
  let offset = 0;

  /** Returns the part of a delta that was not sent before the rewind. */
  function matchSent({ kind, text }: Delta): string {
    let at = 0;
    for (let next = sent[index]; next !== undefined && at < text.length; next = sent[index]) {
      const length = Math.min(text.length - at, next.text.length - offset);
      if (next.kind !== kind || next.text.slice(offset, offset + length) !== text.slice(at, at + length)) {
        throw engineLost();
      }
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
    push(event) {
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
      if (index < sent.length) throw engineLost();
    },
  };
}

const engineLost = (): GatewayError =>
  new GatewayError('engine-unavailable', 'the engine was lost while it replied; send the request again');
