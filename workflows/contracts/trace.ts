import type { BlobRef } from './blob.ts';

/** Half-open range [start, end) of sampled tokens of one turn, all sampled by one policy version. */
export interface VersionSpan {
  readonly version: number;
  readonly start: number;
  readonly end: number;
}

export type FinishReason = 'stop' | 'length' | 'abort';

/** One model call of the agent, as the gateway saw it. `logprobs[i]` (natural log) belongs to `sampledIds[i]`. */
export interface Turn {
  readonly index: number;
  /** The turn whose reply this prompt continues; null: the prompt was rendered as a whole. */
  readonly parent: number | null;
  /** Key under which a client's retry is recognised as the same turn. */
  readonly requestKey: string;
  /** What the prompt adds to its parent's prompt and sampled tokens; without a parent the whole prompt. */
  readonly promptIds: readonly number[];
  /** Of the whole prompt as it was sent to the engine: its length and the CRC-32 of its ids (32-bit little-endian). */
  readonly promptLength: number;
  readonly promptChecksum: number;
  readonly sampledIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/**
 * One root-to-leaf token sequence to train on. All arrays have the length of `tokens`.
 * `mask[i]` is 1 where `tokens[i]` was sampled and is trained; there `logprobs[i]` and `versions[i]` are those of its
 * sampling, elsewhere they are 0 and -1.
 */
export interface Segment {
  readonly index: number;
  readonly kind: 'main' | 'side';
  readonly tokens: readonly number[];
  readonly mask: readonly (0 | 1)[];
  readonly logprobs: readonly number[];
  readonly versions: readonly number[];
  readonly finishReason: FinishReason;
  /** Turns on this segment whose tokens are not trained, with the reason. */
  readonly maskedTurns: readonly { readonly turn: number; readonly reason: string }[];
}

/** The sealed trace: a blob, write-once. */
export interface Trace {
  readonly session: string;
  readonly turns: readonly Turn[];
  readonly segments: readonly Segment[];
  /** Requests that were no provable extension of a branch. */
  readonly forks: number;
  /** Turns that no segment trains, with the reason. */
  readonly maskedTurns: readonly { readonly turn: number; readonly reason: string }[];
  /** Sampled tool calls that were no well-formed call of an offered tool, by what was wrong with them. */
  readonly faultyCalls: Readonly<Record<string, number>>;
  /** The conversation as text, for reports. */
  readonly transcript: readonly { readonly role: string; readonly text: string }[];
}

/** What workflow history knows of a sealed trace. */
export interface TraceSummary {
  readonly trace: BlobRef;
  readonly turns: number;
  readonly segments: number;
  readonly sampledTokens: number;
  /** Smallest and largest policy version over the sampled tokens; null when none was sampled. */
  readonly minVersion: number | null;
  readonly maxVersion: number | null;
  readonly contextOverflow: boolean;
  readonly turnLimit: boolean;
  /** Turns that ended because the engine stayed away beyond the hold. */
  readonly engineFailures: number;
}

/** How the engine samples; belongs to the run, not to the agent. */
export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
  /** -1: off. */
  readonly topK: number;
  readonly maxTokensPerTurn: number;
}
