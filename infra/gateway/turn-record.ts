import { crc32 } from 'node:zlib';
import type { Turn } from '../../workflows/contracts/trace.ts';
import type { AssistantMessage, Message } from './conversation.ts';

/** A finished turn as the journal holds it: enough to rebuild the ledger and to answer a retry with the same reply. */
export interface TurnRecord extends Turn {
  /** Fingerprints, see canonical.ts. */
  readonly context: string;
  readonly conversation: string;
  /** The messages that this turn was the first to see, for the transcript. */
  readonly messages: readonly Message[];
  readonly reply: AssistantMessage;
  readonly faultyCalls: readonly string[];
}

/** Goes on from the checksum of what comes before: a branch's checksums cost its new part only. */
export function checksumOf(ids: readonly number[], before = 0): number {
  return crc32(new Uint8Array(Int32Array.from(ids).buffer), before);
}
