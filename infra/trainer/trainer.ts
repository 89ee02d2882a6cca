/**
 * A Tinker-API trainer. Every call that changes the model carries a sequence id: the same id with the same payload is done
 * once. Throws TemperFailure TrainerUnavailable, TrainerRefused, TrainerLostModel.
 */
export interface Trainer {
  readonly url: string;
  /**
   * How the server reduces token losses to one number. Callers always mean `sum`: the adapter scales advantages for a
   * `datum-mean` server. Nothing can scale cross_entropy there: it stays a mean of means.
   */
  readonly reduction: 'sum' | 'datum-mean';
  /** A new model from the server's base weights. */
  createModel(options: { readonly loraRank: number; readonly seed: number }, signal?: AbortSignal): Promise<string>;
  forwardBackward(request: ForwardBackward, signal?: AbortSignal): Promise<ForwardBackwardResult>;
  optimStep(request: OptimStep, signal?: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** Weights and optimizer state under a name; saving a name twice with the same content is no error. Returns its path. */
  save(modelId: string, name: string, sequence: number, signal?: AbortSignal): Promise<string>;
  /** Only as a model's first request. Without `optimizer` the optimizer starts anew on the loaded weights. */
  load(
    modelId: string,
    checkpoint: { readonly path: string; readonly optimizer: boolean },
    sequence: number,
    signal?: AbortSignal,
  ): Promise<void>;
  /** Weights for the engine. Returns where the engine can load them from. */
  saveForSampler(modelId: string, name: string, sequence: number, signal?: AbortSignal): Promise<string>;
  unload(modelId: string, signal?: AbortSignal): Promise<void>;
  /** Ends heartbeats; the server unloads what nobody keeps alive. */
  close(): void;
}

/** Arrays have one entry per input token; `targets` are the inputs shifted by one. */
export interface Datum {
  readonly tokens: readonly number[];
  readonly targets: readonly number[];
  /** 0 where the target is context. */
  readonly weights: readonly number[];
  /** Behaviour logprobs of the targets; 0 where the weight is. */
  readonly logprobs?: readonly number[];
  readonly advantages?: readonly number[];
  /** Logprobs of the targets under the reference policy, where `lossConfig.kl_coef` is set. */
  readonly referenceLogprobs?: readonly number[];
}

export type LossName = 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo';

export interface ForwardBackward {
  readonly modelId: string;
  readonly sequence: number;
  readonly data: readonly Datum[];
  /** All datums until the next optimStep, when they come in several calls; default: these. */
  readonly datumsInStep?: number;
  readonly loss: LossName;
  readonly lossConfig?: Readonly<Record<string, number>>;
  /** Logprobs only, no gradient. */
  readonly forwardOnly?: boolean;
}

export interface ForwardBackwardResult {
  /** Per datum, per target. */
  readonly logprobs: readonly (readonly number[])[];
  readonly metrics: Readonly<Record<string, number>>;
}

export interface OptimStep {
  readonly modelId: string;
  readonly sequence: number;
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly gradClipNorm?: number;
}
