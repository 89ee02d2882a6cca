// One optimizer step per training step, whatever is killed. The promise is held by a chain, in this order:
//
// 1. activities/trainer/update.ts records the intent before it sends anything: data, model id and sequence ids. A step whose
//    metrics are recorded returns them and sends nothing.
// 2. journal.ts makes each record durable before it returns, and never gives out a sequence id twice for a model.
// 3. activities/trainer/model.ts sends the forward_backward requests of requests.ts, then optim_step. A retry sends the same
//    bytes under the same ids.
// 4. tinker/connection.ts submits a request again under its id when the server has lost the result.
// 5. The server does a request once per (model, sequence id): for the embedded policy, server/tinker/futures.ts in its kit.
// 6. A server that restarts loses the model. The journal then forgets it, and the next try loads the last checkpoint into a
//    new model and replays the recorded data: a step counts once it is in a checkpoint or can be replayed from one.
// 7. The failure of a request is its result at the server, for ever. It makes the journal forget the model, too, so that the
//    next try has new sequence ids; and the batch is divided into requests again.
//
// The limit: link 5 belongs to the server. A third-party trainer that does not de-duplicate by sequence id adds a gradient or
// makes a step twice if temper dies after the server's first one and before the metrics are recorded.

/**
 * A Tinker-API trainer. Every call that changes the model carries a sequence id: the same id with the same payload is done
 * once. Throws the TemperFailures TrainerUnavailable, TrainerRefused and TrainerLostModel.
 */
export interface Trainer {
  readonly url: string;
  /**
   * The server's reduction of token losses to one number. Callers always mean `sum`: for a `datum-mean` server, the
   * advantages are scaled to it. Cross entropy cannot be scaled: there it stays a mean of means.
   */
  readonly reduction: 'sum' | 'datum-mean';
  /** Creates a model from the server's base weights and returns its id. */
  createModel(options: { readonly loraRank: number; readonly seed: number }, signal?: AbortSignal): Promise<string>;
  forwardBackward(request: ForwardBackward, signal?: AbortSignal): Promise<ForwardBackwardResult>;
  optimStep(request: OptimStep, signal?: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** Saves weights and optimizer state under a name, and returns the path. Saving the same content under it again succeeds. */
  save(modelId: string, name: string, sequence: number, signal?: AbortSignal): Promise<string>;
  /**
   * Loads a checkpoint; only as a model's first request. Without `optimizer`, the optimizer starts from zero on the loaded
   * weights.
   */
  load(
    modelId: string,
    checkpoint: { readonly path: string; readonly optimizer: boolean },
    sequence: number,
    signal?: AbortSignal,
  ): Promise<void>;
  /** Removes a checkpoint that `save` returned. One that no longer exists counts as removed. */
  remove(path: string, signal?: AbortSignal): Promise<void>;
  /** Saves weights for the engine, and returns the path from which the engine can load them. */
  saveForSampler(modelId: string, name: string, sequence: number, signal?: AbortSignal): Promise<string>;
  unload(modelId: string, signal?: AbortSignal): Promise<void>;
  /** Ends heartbeats; the server unloads models without them. */
  close(): void;
}

/** Arrays have one entry per input token; `targets` are the inputs shifted by one. */
export interface Datum {
  readonly tokens: readonly number[];
  readonly targets: readonly number[];
  /** 0 for targets that are context. */
  readonly weights: readonly number[];
  /** Behaviour logprobs of the targets; 0 where the weight is 0. */
  readonly logprobs?: readonly number[];
  readonly advantages?: readonly number[];
  /** Logprobs of the targets under the reference policy; needed if `lossConfig.kl_coef` is set. */
  readonly referenceLogprobs?: readonly number[];
}

export type LossName = 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo';

export interface ForwardBackward {
  readonly modelId: string;
  readonly sequence: number;
  readonly data: readonly Datum[];
  /** The number of datums until the next optimStep, if they come in several calls; by default, those of this call. */
  readonly datumsInStep?: number;
  readonly loss: LossName;
  readonly lossConfig?: Readonly<Record<string, number>>;
  /** Computes logprobs without a gradient. */
  readonly forwardOnly?: boolean;
}

export interface ForwardBackwardResult {
  /** One list per datum, with one entry per target. */
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
