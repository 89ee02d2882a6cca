import { crc32 } from 'node:zlib';
import type { FinishReason, TokenSampling, Turn } from '../../../workflows/contracts/trace.ts';
import type { Prompt } from '../../engine/prompt.ts';
import type { AssistantMessage, Message } from '../../kits/chat-tokens/index.ts';
import type { SampledTurn } from '../turns/sampling.ts';
import type { EchoDifference } from './echo.ts';
import type { Plan } from './ledger.ts';

/** A finished turn as the journal holds it: enough to rebuild the ledger and to answer a retry with the same reply. */
export interface TurnRecord extends Turn {
  /** Fingerprints, see fingerprint.ts. */
  readonly context: string;
  readonly conversation: string;
  /** The messages that this turn was the first to see, for the transcript. */
  readonly messages: readonly Message[];
  readonly reply: AssistantMessage;
  readonly faultyCalls: readonly string[];
  /** Whether the request offered tools; journals of before don't say. */
  readonly offersTools?: boolean;
  /** It ended by length before it had as many tokens as were asked for: the context had no room, and has none on a retry. */
  readonly cutShort?: true;
  /** How the client gave back the reply that this turn goes on from, where not as it was said. */
  readonly echo?: readonly EchoDifference[];
}

/** What a turn of the policy came to, before it has an index. */
export interface Spoken {
  readonly sampled: SampledTurn;
  /** How many tokens it might have had, but for the context. */
  readonly asked: number;
  /** By what it was sampled, where not by the run's. */
  readonly override: TokenSampling | null;
  readonly reply: AssistantMessage;
  readonly faultyCalls: readonly string[];
}

/** Part of a record. */
export const cutShort = (finishReason: FinishReason, sampled: number, asked: number): Pick<TurnRecord, 'cutShort'> =>
  finishReason === 'length' && sampled < asked ? { cutShort: true } : {};

export function recordOf(
  plan: Plan,
  { sampled, asked, override, reply, faultyCalls }: Spoken,
  startedAt: number,
  index: number,
): TurnRecord {
  return {
    index,
    parent: plan.parent,
    requestKey: plan.key,
    promptIds: plan.newIds,
    promptLength: plan.prompt.length,
    promptChecksum: checksumOf(plan.prompt),
    sampledIds: sampled.ids,
    logprobs: sampled.logprobs,
    versions: sampled.versions,
    finishReason: sampled.finishReason,
    ...(sampled.aborts === 0 ? {} : { aborts: sampled.aborts }),
    ...cutShort(sampled.finishReason, sampled.ids.length, asked),
    ...(override !== null && { sampling: override }),
    startedAt,
    endedAt: Date.now(),
    context: plan.fingerprint.context,
    conversation: plan.fingerprint.withReply(reply),
    messages: plan.newMessages,
    reply,
    faultyCalls,
    offersTools: plan.offersTools,
    ...(plan.echo.length === 0 ? {} : { echo: plan.echo }),
  };
}

/** Of the very bytes that the engine was sent. */
const checksumOf = ({ chunks }: Prompt): number => chunks.reduce((sum, chunk) => crc32(chunk, sum), 0);
