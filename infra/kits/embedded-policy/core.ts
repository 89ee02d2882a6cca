import type { PolicyError } from './errors.ts';

/**
 * The embedded policy's core: what a server in front of it codes against. Types only.
 *
 * Guarantees:
 * - Sampler and trainer logprobs are bit-identical for equal weights, whatever else is in the batch (temperature 1).
 * - Weights change between decode steps only; every sampled token carries the version label it was sampled under.
 * - Equal seeds, datums and calls give byte-identical weights; how datums are cut into `forwardBackward` calls does not matter.
 * - A call that fails has had no effect. NaN and infinity never enter weights.
 *
 * Not guaranteed: equal bits between the `js` and `simd` kernels. Choose one per run; `PolicyCore.kernel` names it.
 */

export type KernelName = 'simd' | 'js';

export interface PolicyCoreOptions {
  /** config.json, model.safetensors (else initialised from the config's seed); tokenizer files are not read */
  readonly modelDir: string;
  /** Arithmetic in WebAssembly (`simd`, the default) or in plain JavaScript. */
  readonly kernel?: KernelName;
  /** at most, and by default, the config's max_position_embeddings */
  readonly contextLength?: number;
  /** sequences decoded at the same time; further requests wait */
  readonly slots?: number;
  /** label of the weights in modelDir, "0" by default */
  readonly version?: string;
}

/** One sampler and one trainer, each on its own thread. `createPolicyCore(options)` in create-policy-core.ts builds it. */
export interface PolicyCore {
  readonly kernel: KernelName;
  readonly model: ModelDescription;
  readonly sampler: SamplerCore;
  readonly trainer: TrainerCore;
  /** resolves (never rejects) when a worker thread died; everything pending was refused with the same error */
  readonly crashed: Promise<PolicyError>;
  /** aborts what is running, refuses what follows, ends both threads; repeatable */
  close(): Promise<void>;
}

export interface ModelDescription {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediateSize: number;
  /** effective: prompt + maxTokens must not exceed it */
  readonly contextLength: number;
  readonly parameterCount: number;
}

// ---------------------------------------------------------------------------------------------------------- sampler

export interface SampleRequest {
  /** unique among unfinished requests */
  readonly requestId: string;
  /** at least one token */
  readonly tokenIds: ArrayLike<number>;
  /** at least 1; tokenIds.length + maxTokens must fit the context length */
  readonly maxTokens: number;
  /** 0 = greedy; 1 by default */
  readonly temperature?: number;
  /** in (0, 1]; 1 (off) by default */
  readonly topP?: number;
  /** -1 or 0 = off (default) */
  readonly topK?: number;
  /** sampling one of these ends the sequence; the token itself is part of the result */
  readonly stopTokenIds?: readonly number[];
  /** integer; equal seed, request and weights give equal tokens in any batch. Random by default */
  readonly seed?: number;
  /** also report the logprob of each prompt token (a `prompt` event before the first token) */
  readonly promptLogprobs?: boolean;
}

export type FinishReason = 'stop' | 'length' | 'abort';

/**
 * What `generate` yields: at most one `prompt`, then `token`s, then exactly one `finish`.
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
 * - `abort`: everything running or waiting finishes now with reason `abort` and the tokens it has
 * - `keep`: everything freezes where it is and goes on at `resume`, with whatever weights are loaded then
 * - `wait`: what runs finishes first; what waits stays waiting
 * Requests that come while paused wait for `resume` in every mode.
 */
export type PauseMode = 'abort' | 'keep' | 'wait';

export interface SamplerStatus {
  readonly running: number;
  readonly waiting: number;
  readonly paused: boolean;
  readonly version: string;
  /** sha256 (hex) of the weights; equals the trainer's and the checkpoint's for equal weights */
  readonly checksum: string;
  /** since start */
  readonly generatedTokens: number;
  readonly prefilledTokens: number;
  /** prompt tokens taken over from another sequence's cache */
  readonly reusedTokens: number;
  /** mean share of slots busy, over decode steps */
  readonly occupancy: number;
}

export interface LoadWeightsResult {
  readonly version: string;
  readonly checksum: string;
  /** sequences in flight that will continue on the new weights */
  readonly inFlight: number;
}

export interface LoadWeightsOptions {
  /** what running sequences do with their cache: keep it (default) or compute it again under the new weights */
  readonly cache?: 'keep' | 'recompute';
}

export interface SamplerCore {
  /**
   * Contract:
   * - a refused request throws a `PolicyError` at the first `next()`
   * - an aborted `signal`, `abort()` and leaving the loop early all free the slot; the first two yield `finish: abort`
   * - the consumer never slows the others down: events are buffered (at most maxTokens)
   */
  generate(request: SampleRequest, signal?: AbortSignal): AsyncIterable<SampleEvent>;
  /** resolves when the mode's state is reached (`wait`: when nothing runs any more, or `resume` came first) */
  pause(mode: PauseMode): Promise<SamplerStatus>;
  resume(): Promise<SamplerStatus>;
  /**
   * Swaps weights between two decode steps. `path`: a directory with model.safetensors, or such a file, of this architecture.
   * Everything is checked before anything changes.
   */
  loadWeights(path: string, version: string, options?: LoadWeightsOptions): Promise<LoadWeightsResult>;
  /** renames the current weights: tokens sampled from now on carry the label */
  setVersion(version: string): Promise<SamplerStatus>;
  /** returns how many were still unfinished; an unknown id counts 0 */
  abort(requestIds: readonly string[] | 'all'): Promise<number>;
  status(): Promise<SamplerStatus>;
}

// ---------------------------------------------------------------------------------------------------------- trainer

/**
 * One sequence to train on. All arrays have the length of `inputTokens`; `targetTokens[t]` is the token after
 * `inputTokens[0..t]` (inputs shifted by one). Which ones a loss needs is in losses/.
 */
export interface Datum {
  readonly inputTokens: ArrayLike<number>;
  readonly targetTokens: ArrayLike<number>;
  /** multiplies the token's loss; 0 = masked out. All 1 by default (cross_entropy and `kl_coef` > 0 need it given) */
  readonly weights?: ArrayLike<number>;
  /** the sampler's logprob of each target token */
  readonly logprobs?: ArrayLike<number>;
  readonly advantages?: ArrayLike<number>;
  /** logprob of each target token under the reference policy, for `kl_coef` > 0 */
  readonly referenceLogprobs?: ArrayLike<number>;
}

export const lossNames = ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'] as const;
export type LossName = (typeof lossNames)[number];

/** Unknown keys are refused. Clip thresholds are absolute ratios, as on the Tinker wire. */
export interface LossConfig {
  /** ppo, cispo; 0.8 by default */
  readonly clip_low_threshold?: number;
  /** ppo, cispo; 1.2 by default */
  readonly clip_high_threshold?: number;
  /** all but cross_entropy; adds kl_coef * k3 per token; 0 by default */
  readonly kl_coef?: number;
}

export interface DatumOutput {
  /** of each target token, under the current weights */
  readonly logprobs: Float32Array;
  /** the weighted loss of each token */
  readonly elementwiseLoss: Float32Array;
}

/**
 * `loss:sum` is what was differentiated: the SUM of token losses over the datums, not a mean. Others: `loss:mean` (per weighted
 * token), `tokens`, `weighted_tokens`, `datums`; for the RL losses also `ratio:mean`, `ratio:max`, `clip_fraction`, `kl:sampler`,
 * `logprob_difference:max`, and `kl:reference` when asked for.
 */
export type Metrics = Readonly<Record<string, number>>;

export interface ForwardBackwardResult {
  readonly outputs: readonly DatumOutput[];
  readonly metrics: Metrics;
  /** sha256 (hex) of loss, settings and datums as received */
  readonly digest: string;
}

export interface AdamParams {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  /** decoupled (AdamW), applied to every parameter */
  readonly weightDecay: number;
  /** 0 = off */
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
  /** optimizer steps this model has made, this one included */
  readonly step: number;
  /** `grad_norm` (before clipping), `learning_rate`, `datums` accumulated since the last step, `update_norm` */
  readonly metrics: Metrics;
  readonly checksum: string;
}

/** What the trainer received, in order; part of the checkpoint with optimizer state. */
export interface ReceivedDigest {
  readonly kind: 'forward_backward' | 'optim_step';
  /** optimizer steps made before it came */
  readonly step: number;
  readonly digest: string;
}

export interface TrainedModelStatus {
  readonly modelId: string;
  readonly baseDir: string;
  readonly step: number;
  readonly checksum: string;
  /** datums whose gradient waits for the next optimStep */
  readonly accumulatedDatums: number;
  readonly received: readonly ReceivedDigest[];
}

export interface SaveResult {
  readonly path: string;
  readonly step: number;
  /** of the weights */
  readonly checksum: string;
  readonly bytes: number;
}

export interface TrainerCore {
  /** weights from `baseDir` (model.safetensors, else initialised from `seed` or the config's seed); moments and step 0 */
  createModel(
    modelId: string,
    options: { readonly baseDir: string; readonly seed?: number },
  ): Promise<TrainedModelStatus>;
  /**
   * Adds the gradient of the SUM of token losses to what has been accumulated since the last `optimStep`.
   * `forwardOnly` computes the same outputs and leaves the gradient (and the received digests) alone.
   */
  forwardBackward(
    modelId: string,
    datums: readonly Datum[],
    lossName: string,
    lossConfig?: LossConfig,
    forwardOnly?: boolean,
  ): Promise<ForwardBackwardResult>;
  /** one AdamW step on the accumulated gradient (zero if there is none), which it clears */
  optimStep(modelId: string, adamParams: AdamParams): Promise<OptimStepResult>;
  /**
   * Writes a model directory (config.json, model.safetensors; with `optimizer` also optimizer.safetensors) that `loadWeights`,
   * `load` and `createModel` take. Atomic: temporary name, fsync, rename. Refuses a directory that exists. Accumulated
   * gradients are not saved.
   */
  save(modelId: string, dir: string, options: { readonly optimizer: boolean }): Promise<SaveResult>;
  /** replaces weights and, with `optimizer`, moments, step and received digests (else they start at 0); drops gradients */
  load(modelId: string, dir: string, options: { readonly optimizer: boolean }): Promise<TrainedModelStatus>;
  unload(modelId: string): Promise<void>;
  status(modelId: string): Promise<TrainedModelStatus>;
  models(): Promise<readonly string[]>;
}
