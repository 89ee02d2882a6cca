import type { PolicyError } from './errors.ts';
import type { SamplerCore } from './sampler-core.ts';
import type { TrainerCore } from './trainer-core.ts';

/**
 * The contract of the embedded policy's core, for the server in front of it. Types only.
 *
 * Guarantees:
 * - Sampler and trainer logprobs are bit-identical for equal weights, whatever else is in the batch (temperature 1).
 * - Weights change only between decode steps; every sampled token carries the label of the version it was sampled under.
 * - Equal seeds, datums and calls give byte-identical weights, however datums are divided into `forwardBackward` calls.
 * - A call that fails has had no effect. NaN and infinity never enter weights.
 */

export interface PolicyCoreOptions {
  /** Directory with config.json and model.safetensors; without the latter, weights are initialised from the config's seed. */
  readonly modelDir: string;
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
