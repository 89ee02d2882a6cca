import type { PolicyError } from './errors.ts';

/**
 * The contract of the embedded policy's core, for the server in front of it. Types only.
 *
 * Guarantees:
 * - Sampler and trainer logprobs are bit-identical for equal weights, whatever else is in the batch (temperature 1).
 * - Weights change only between decode steps; every sampled token carries the label of the version it was sampled under.
 * - Equal seeds, datums and calls give byte-identical weights, however datums are divided into `forwardBackward` calls.
 * - A call that fails has had no effect. NaN and infinity never enter weights.
 *
 * Not guaranteed: equal bits between the `js` and `simd` kernels. Choose one per run; `PolicyCore.kernel` names it.
 */

export type KernelName = 'simd' | 'js';

export interface PolicyCoreOptions {
  /** Directory with config.json and model.safetensors; without the latter, weights are initialised from the config's seed. */
  readonly modelDir: string;
  /** Arithmetic in WebAssembly (`simd`, the default) or in plain JavaScript. */
  readonly kernel?: KernelName;
  /** The context length in tokens; at most the config's max_position_embeddings, which is also the default. */
  readonly contextLength?: number | undefined;
  /** Sequences decoded at the same time; further requests wait. */
  readonly slots?: number | undefined;
  /** Label of the weights in modelDir; "0" by default. */
  readonly version?: string;
}

/** One sampler on its own thread. `createSamplingCore(options)` in create-policy-core.ts builds it. */
export interface SamplingCore {
  readonly model: ModelDescription;
  readonly sampler: SamplerCore;
  /** Resolves, and never rejects, when a worker thread has died; everything pending was refused with the same error. */
  readonly crashed: Promise<PolicyError>;
  /** Aborts running requests, refuses later ones and ends the threads. Repeatable. */
  close(): Promise<void>;
}

/** One sampler and one trainer, each on its own thread. `createPolicyCore(options)` in create-policy-core.ts builds it. */
export interface PolicyCore extends SamplingCore {
  readonly kernel: KernelName;
  readonly trainer: TrainerCore;
}

export interface ModelDescription {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediateSize: number;
  /** The effective limit of prompt + maxTokens. */
  readonly contextLength: number;
  readonly parameterCount: number;
}

// ---------------------------------------------------------------------------------------------------------- sampler

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

// ---------------------------------------------------------------------------------------------------------- trainer

/**
 * One sequence to train on. All arrays have the length of `inputTokens`; `targetTokens[t]` is the token after
 * `inputTokens[0..t]` (inputs shifted by one). Each loss in losses/ lists the arrays that it needs.
 */
export interface Datum {
  readonly inputTokens: ArrayLike<number>;
  readonly targetTokens: ArrayLike<number>;
  /** Factor of each token's loss; 0 masks it out. All 1 by default, but required by cross_entropy and by `kl_coef` > 0. */
  readonly weights?: ArrayLike<number>;
  /** The sampler's logprob of each target token. */
  readonly logprobs?: ArrayLike<number>;
  readonly advantages?: ArrayLike<number>;
  /** Logprob of each target token under the reference policy; required by `kl_coef` > 0. */
  readonly referenceLogprobs?: ArrayLike<number>;
}

export const lossNames = ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'] as const;
export type LossName = (typeof lossNames)[number];

/** Unknown keys are refused. Clip thresholds are absolute ratios, as on the Tinker wire. */
export interface LossConfig {
  /** Setting of ppo and cispo; 0.8 by default. */
  readonly clip_low_threshold?: number;
  /** Setting of ppo and cispo; 1.2 by default. */
  readonly clip_high_threshold?: number;
  /** Setting of all but cross_entropy; adds kl_coef * k3 per token; 0 by default. */
  readonly kl_coef?: number;
}

export interface DatumOutput {
  /** Logprob of each target token under the current weights. */
  readonly logprobs: Float32Array;
  /** The weighted loss of each token. */
  readonly elementwiseLoss: Float32Array;
}

/**
 * `loss:sum` is the value that was differentiated: the SUM of token losses over the datums, not a mean. Others:
 * `loss:mean` (per weighted token), `tokens`, `weighted_tokens`, `datums`; for the RL losses also `ratio:mean`,
 * `ratio:max`, `clip_fraction`, `kl:sampler`, `logprob_difference:max`, and `kl:reference` when asked for.
 */
export type Metrics = Readonly<Record<string, number>>;

export interface ForwardBackwardResult {
  readonly outputs: readonly DatumOutput[];
  readonly metrics: Metrics;
  /** SHA-256 (hex) of loss, settings and datums as received. */
  readonly digest: string;
}

export interface AdamParams {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  /** Decoupled (AdamW), applied to every parameter. */
  readonly weightDecay: number;
  /** 0 switches it off. */
  readonly gradClipNorm: number;
}

/** The Tinker SDK's defaults. */
export const defaultAdamParams: AdamParams = {
  learningRate: 1e-4,
  beta1: 0.9,
  beta2: 0.95,
  eps: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};

export interface OptimStepResult {
  /** Optimizer steps of this model, including this one. */
  readonly step: number;
  /** `grad_norm` (before clipping), `learning_rate`, `datums` accumulated since the last step, and `update_norm`. */
  readonly metrics: Metrics;
  readonly checksum: string;
}

/** A request that the trainer received; those of the last steps are part of a checkpoint with optimizer state. */
export interface ReceivedDigest {
  readonly kind: 'forward_backward' | 'optim_step';
  /** Optimizer steps made before it. */
  readonly step: number;
  readonly digest: string;
}

export interface TrainedModelStatus {
  readonly modelId: string;
  readonly baseDir: string;
  readonly step: number;
  readonly checksum: string;
  /** Datums whose gradient waits for the next optimStep. */
  readonly accumulatedDatums: number;
  readonly received: readonly ReceivedDigest[];
}

export interface SaveResult {
  readonly path: string;
  readonly step: number;
  /** Checksum of the weights. */
  readonly checksum: string;
  readonly bytes: number;
}

export interface TrainerCore {
  /**
   * Creates a model with the weights of `baseDir`, initialised from `seed` or the config's seed if it has none; moments and
   * step are 0.
   */
  createModel(
    modelId: string,
    options: { readonly baseDir: string; readonly seed?: number | undefined },
  ): Promise<TrainedModelStatus>;
  /**
   * Adds the gradient of the SUM of token losses to what has been accumulated since the last `optimStep`.
   * `forwardOnly` computes the same outputs and leaves the gradient (and the received digests) alone.
   */
  forwardBackward(
    modelId: string,
    datums: readonly Datum[],
    lossName: string,
    options?: { readonly lossConfig?: LossConfig; readonly forwardOnly?: boolean },
  ): Promise<ForwardBackwardResult>;
  /** Makes one AdamW step on the accumulated gradient (zero if there is none), and clears it. */
  optimStep(modelId: string, adamParams: AdamParams): Promise<OptimStepResult>;
  /**
   * Writes a model directory for `loadWeights`, `load` and `createModel`: config.json and model.safetensors, with `optimizer`
   * also optimizer.safetensors. Atomic: temporary name, fsync, rename. Refuses a directory that exists. Accumulated gradients
   * are not saved.
   */
  save(modelId: string, dir: string, options: { readonly optimizer: boolean }): Promise<SaveResult>;
  /**
   * Replaces the weights and drops gradients. Moments, step and received digests are loaded with `optimizer`, and otherwise
   * start at 0.
   */
  load(modelId: string, dir: string, options: { readonly optimizer: boolean }): Promise<TrainedModelStatus>;
  unload(modelId: string): Promise<void>;
  status(modelId: string): Promise<TrainedModelStatus>;
  models(): Promise<readonly string[]>;
}
