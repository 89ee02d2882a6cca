import type { AssistantMessage, Conversation } from '../../kits/chat-tokens/index.ts';
import { isEchoOf } from './echo.ts';
import { createFingerprints, type Fingerprint } from './fingerprint.ts';
import { type TurnRecord, turnKeyOf } from './turn-record.ts';

/** The tree of a session's turns, found by the contents of their conversations. */
export interface TurnTree {
  readonly turns: readonly TurnRecord[];
  /** The number of roots after the first. */
  readonly forks: number;
  /** Returns a conversation's fingerprint. Cheap: nothing is rendered. */
  fingerprintOf(conversation: Conversation): Fingerprint;
  /** Returns the finished turn of a key, or null. */
  answered(key: string): TurnRecord | null;
  /** Returns the turn that a conversation continues; null when it cannot be proved to continue one. */
  continued(conversation: Conversation, fingerprint: Fingerprint): Continued | null;
  add(turn: TurnRecord): void;
}

/** A turn, and the client's echo of its reply. */
export interface Continued {
  readonly parent: TurnRecord;
  readonly echo: AssistantMessage;
}

export function createTurnTree(): TurnTree {
  const turns: TurnRecord[] = [];
  const byKey = new Map<string, TurnRecord>();
  /** The turns of each conversation, the last one first. */
  const byRequest = new Map<string, readonly TurnRecord[]>();
  const byReply = new Map<string, TurnRecord>();

  /** Finds the turn whose reply is echoed: exactly, or as a variant after the same request. */
  function echoedBy(echo: AssistantMessage, { lastReply, lastRequest }: Fingerprint): TurnRecord | undefined {
    const exact = byReply.get(lastReply ?? '');
    if (exact !== undefined) return exact;
    return byRequest.get(lastRequest ?? '')?.find(({ reply }) => isEchoOf(echo, reply));
  }

  return {
    turns,
    get forks() {
      return Math.max(0, turns.filter(({ parent }) => parent === null).length - 1);
    },
    fingerprintOf: createFingerprints(),
    answered: (key) => byKey.get(key) ?? null,
    continued({ messages }, fingerprint) {
      // This message is the last reply, since only messages of other roles follow it.
      const echo = messages.at(-1 - fingerprint.added.length);
      const parent = echo?.role === 'assistant' ? echoedBy(echo, fingerprint) : undefined;
      return echo?.role === 'assistant' && parent !== undefined ? { parent, echo } : null;
    },
    add(added) {
      const turn = compact(added);
      turns.push(turn);
      byKey.set(turnKeyOf(turn.requestKey, turn.sample ?? 1), turn);
      byRequest.set(turn.requestKey, [turn, ...(byRequest.get(turn.requestKey) ?? [])]);
      byReply.set(turn.conversation, turn);
    },
  };
}

/** A shorter list of ids is kept as it is. */
const longPrompt = 1_024;

/**
 * Returns the turn with the ids of a long prompt in 4 bytes each, outside the heap: they are read again only when the session
 * is sealed, and the lists of a thousand long conversations would keep the garbage collector busy until then.
 */
function compact(turn: TurnRecord): TurnRecord {
  if (turn.promptIds.length < longPrompt) return turn;
  const ids = Int32Array.from(turn.promptIds);
  return Object.defineProperty({ ...turn }, 'promptIds', { enumerable: true, get: () => Array.from(ids) });
}
