import type { AssistantMessage, Conversation } from '../../kits/chat-tokens/index.ts';
import { isEchoOf } from './echo.ts';
import { createFingerprints, type Fingerprint } from './fingerprint.ts';
import type { TurnRecord } from './turn-record.ts';

/** The turns of a session, by what was said in them. */
export interface TurnTree {
  readonly turns: readonly TurnRecord[];
  /** Roots but the first. */
  readonly forks: number;
  /** Cheap: nothing is rendered. */
  fingerprintOf(conversation: Conversation): Fingerprint;
  /** The finished turn that answered the same conversation, if there is one. */
  answered(key: string): TurnRecord | null;
  /** What a conversation goes on from; null: nothing of this session, as far as can be proved. */
  continued(conversation: Conversation, fingerprint: Fingerprint): Continued | null;
  add(turn: TurnRecord): void;
}

/** A turn, and its reply as the client gives it back. */
export interface Continued {
  readonly parent: TurnRecord;
  readonly echo: AssistantMessage;
}

export function createTurnTree(): TurnTree {
  const turns: TurnRecord[] = [];
  const byRequest = new Map<string, TurnRecord>();
  const byReply = new Map<string, TurnRecord>();

  /** The turn whose reply the client gives back: in its own words, or in others behind the same request. */
  function meantBy(echo: AssistantMessage, { lastReply, asked }: Fingerprint): TurnRecord | undefined {
    const exact = byReply.get(lastReply ?? '');
    if (exact !== undefined) return exact;
    const answered = byRequest.get(asked ?? '');
    return answered !== undefined && isEchoOf(echo, answered.reply) ? answered : undefined;
  }

  return {
    turns,
    get forks() {
      return Math.max(0, turns.filter(({ parent }) => parent === null).length - 1);
    },
    fingerprintOf: createFingerprints(),
    answered: (key) => byRequest.get(key) ?? null,
    continued({ messages }, fingerprint) {
      // The last reply, with only other people's messages behind it.
      const echo = messages.at(-1 - fingerprint.added.length);
      const parent = echo?.role === 'assistant' ? meantBy(echo, fingerprint) : undefined;
      return echo?.role === 'assistant' && parent !== undefined ? { parent, echo } : null;
    },
    add(turn) {
      turns.push(turn);
      byRequest.set(turn.requestKey, turn);
      byReply.set(turn.conversation, turn);
    },
  };
}
