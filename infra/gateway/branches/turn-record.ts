import { createHash } from 'node:crypto';
import type { FinishReason, Turn } from '../../../workflows/contracts/trace.ts';
import type { AssistantMessage, Message } from '../../kits/chat-tokens/index.ts';
import type { EchoDifference } from './echo.ts';

/** A finished turn as the journal holds it: enough to rebuild the tree of turns and to answer a retry with the same reply. */
export interface TurnRecord extends Turn {
  /** The names of the request that began it, by which a repetition is recognised; see samples.ts. Omitted when it has none. */
  readonly askedBy?: readonly string[];
  /** The fingerprint of the conversation's head, see fingerprint.ts. */
  readonly context: string;
  /** The fingerprint of the conversation with this reply. */
  readonly conversation: string;
  /** The messages that this turn was the first to see, for the transcript. */
  readonly messages: readonly Message[];
  readonly reply: AssistantMessage;
  /** The status of each call that was not well-formed. */
  readonly faultyCalls: readonly string[];
  /** Whether the request offered tools. */
  readonly offersTools: boolean;
  /** Set when the context ended the reply before it had the tokens that were asked for: a retry would not have more space. */
  readonly cutShort?: true;
  /** The differences between the parent's reply and the client's echo of it. Omitted when there are none. */
  readonly echo?: readonly EchoDifference[];
}

/**
 * Returns the key of a turn: that of its conversation for the first sample of it. A further sample has another key, since clients
 * and engines know a reply by it.
 */
export const turnKeyOf = (conversation: string, sample: number): string =>
  sample === 1 ? conversation : createHash('sha256').update(`${conversation} ${sample}`).digest('hex').slice(0, 32);

/** Returns messages as the journal keeps them. Images are left out: only the model needs them, and they are large. */
export const withoutImages = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) => {
    if (!('parts' in message)) return message;
    const { parts: _, ...rest } = message;
    return rest;
  });

/** Returns the `cutShort` field of a record. */
export const cutShort = (finishReason: FinishReason, sampled: number, asked: number): Pick<TurnRecord, 'cutShort'> =>
  finishReason === 'length' && sampled < asked ? { cutShort: true } : {};

/** Returns the smallest and largest policy version over the tokens of some turns; null when none was sampled. */
export function versionRange(turns: readonly TurnRecord[]): {
  readonly min: number | null;
  readonly max: number | null;
} {
  const versions = turns.flatMap((turn) => turn.versions.map(({ version }) => version));
  if (versions.length === 0) return { min: null, max: null };
  const pick = (choose: (left: number, right: number) => number): number => versions.reduce((a, b) => choose(a, b));
  return { min: pick(Math.min), max: pick(Math.max) };
}
