export interface SampleRequest {
  /** Unique among unfinished requests. */
  readonly requestId: string;
  /** Prompt of one or more tokens. */
  readonly tokenIds: ArrayLike<number>;
  /** Minimum 1; tokenIds.length + maxTokens must fit the context length. */
  readonly maxTokens: number;
  /** 0 for greedy sampling; 1 by default. */
  readonly temperature?: number;
  /** Share of probability, 0 excluded; 1 (off) by default. */
  readonly topP?: number;
  /** -1 (default) or 0 switches it off. */
  readonly topK?: number;
  /** Sampling one of these ends the sequence; the token itself is part of the result. */
  readonly stopTokenIds?: readonly number[];
  /** Integer, random by default. Equal seed, request and weights give equal tokens in any batch. */
  readonly seed?: number;
  /** Whether to report the logprob of each prompt token, in a `prompt` event before the first token. */
  readonly promptLogprobs?: boolean;
}

export type FinishReason = 'stop' | 'length' | 'abort';

/**
 * The events of `generate`: at most one `prompt`, then `token`s, then exactly one `finish`.
 *
 * `logprob` is the natural log of the token's probability at the request's temperature over the *whole* vocabulary: top-p and
 * top-k choose among tokens but do not renormalise it. At temperature 0 it is that of temperature 1. At temperature 1 it equals
 * the trainer's logprob of the same token in the same context bit for bit.
 */
export type SampleEvent =
  | { readonly type: 'prompt'; readonly logprobs: readonly (number | null)[] } // null for the first token
  | { readonly type: 'token'; readonly tokenId: number; readonly logprob: number; readonly version: string }
  | { readonly type: 'finish'; readonly reason: FinishReason };

/**
 * The treatment of unfinished requests by `pause`:
 * - `abort`: running and waiting requests finish now, with reason `abort` and the tokens they have
 * - `keep`: requests freeze where they are and continue at `resume`, with the weights that are loaded then
 * - `wait`: running requests finish first; waiting ones stay waiting
 * Requests that arrive while paused wait for `resume` in every mode.
 */
export type PauseMode = 'abort' | 'keep' | 'wait';

export interface SamplerStatus {
  readonly running: number;
  readonly waiting: number;
  readonly paused: boolean;
  readonly version: string;
  /** SHA-256 (hex) of the weights; equal weights have the same one in sampler, trainer and checkpoint. */
  readonly checksum: string;
  /** Tokens since the start. */
  readonly generatedTokens: number;
  readonly prefilledTokens: number;
  /** Prompt tokens whose cache was copied from another sequence. */
  readonly reusedTokens: number;
  /** Mean share of busy slots over decode steps. */
  readonly occupancy: number;
}

export interface LoadWeightsResult {
  readonly version: string;
  readonly checksum: string;
  /** Running sequences that will continue on the new weights. */
  readonly inFlight: number;
}

export interface LoadWeightsOptions {
  /** The cache of running sequences: kept (default), or computed again under the new weights. */
  readonly cache?: 'keep' | 'recompute';
}

/** The sampler of a policy: requests in batches of running sequences, under weights that change between decode steps. */
export interface SamplerCore {
  /**
   * Samples a sequence. Contract:
   * - A refused request throws a `PolicyError` at the first `next()`.
   * - An aborted `signal`, `abort()` and leaving the loop early all free the slot; the first two yield `finish: abort`.
   * - A slow consumer does not slow down others: events are buffered (at most maxTokens).
   */
  generate(request: SampleRequest, signal?: AbortSignal): AsyncIterable<SampleEvent>;
  /** Resolves when the mode's state is reached; in mode `wait` when nothing runs any more, or at `resume`. */
  pause(mode: PauseMode): Promise<SamplerStatus>;
  resume(): Promise<SamplerStatus>;
  /**
   * Swaps weights between two decode steps. `path` is a directory with model.safetensors, or such a file, of this
   * architecture. Everything is checked before anything changes.
   */
  loadWeights(path: string, version: string, options?: LoadWeightsOptions): Promise<LoadWeightsResult>;
  /** Renames the current weights: tokens sampled from now on carry the label. */
  setVersion(version: string): Promise<SamplerStatus>;
  /** Returns the number of requests that were unfinished; an unknown id does not count. */
  abort(requestIds: readonly string[] | 'all'): Promise<number>;
  status(): Promise<SamplerStatus>;
}
