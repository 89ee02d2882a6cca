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

/** The trainer of a policy: several models by their ids, each with its gradients, moments and steps. */
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
