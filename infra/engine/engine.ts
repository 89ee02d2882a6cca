import type { SessionSettings } from '../../workflows/contracts/rollout.ts';
import type { FinishReason, VersionSpan } from '../../workflows/contracts/trace.ts';
import type { Prompt } from './prompt.ts';

/**
 * An inference server, token-in/token-out. Adapters check ids and logprobs for presence, length and finiteness and throw
 * TemperFailure EngineInvalid, never a silent zero; EngineUnavailable when it can't be reached.
 */
export interface Engine {
  readonly url: string;
  /** Yields sampled tokens as they come; ends after the event that carries `finishReason`. Aborting the signal aborts the generation. */
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<GenerateEvent>;
  health(signal?: AbortSignal): Promise<EngineHealth>;
  /** Puts a policy version into service: get-or-load, safe to repeat. Later requests of that version's model see it. */
  publish(publication: Publication, signal?: AbortSignal): Promise<void>;
  /**
   * Has a version that is in service stay there for those who ask for it by its number, whatever is published later, until a
   * publication no longer names it. False: this engine can't, or serves it no more.
   */
  hold(version: number, signal?: AbortSignal): Promise<boolean>;
}

export interface GenerateRequest {
  readonly requestId: string;
  /** Requests of one session share a prefix: where there are several replicas, they go to the same one. */
  readonly session?: string;
  readonly prompt: Prompt;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** -1: off. */
  readonly topK: number;
  readonly stopTokenIds: readonly number[];
  readonly seed?: number;
  /**
   * The version to sample by, where the engine holds several (adapters): VersionNotServed when it lacks this one. One with
   * full weights that does not hold it samples by what is in service; its spans tell. Default: the newest.
   */
  readonly policyVersion?: SessionSettings['policyVersion'];
}

export interface GenerateEvent {
  readonly tokenIds: readonly number[];
  /** Natural logs, one per token id. */
  readonly logprobs: readonly number[];
  /** Only on the last event. */
  readonly finishReason?: FinishReason;
  /** Spans over all sampled tokens of the request; only on the last event. */
  readonly versions?: readonly VersionSpan[];
}

export interface EngineHealth {
  readonly ready: boolean;
  readonly paused: boolean;
  /** The last published policy version; null before the first. */
  readonly version: number | null;
  /** All that can be sampled by; absent: only the last one. */
  readonly versions?: readonly number[];
  /** Null: the engine does not say. */
  readonly contextLength: number | null;
  /** Absent: the engine does not say. */
  readonly capacity?: EngineCapacity;
}

/** What an engine can work on at once; null: it does not say. */
export interface EngineCapacity {
  readonly requests: number | null;
  /** Tokens that its KV cache holds. */
  readonly kvTokens: number | null;
}

export interface Publication {
  readonly version: number;
  /** Name under which the trainer saved it. */
  readonly name: string;
  /** Where the engine finds it: a directory of weights, or a LoRA adapter. */
  readonly path: string;
  readonly method: 'reload' | 'lora';
  /** Versions that somebody still samples by: they stay loaded, where the engine can hold several. */
  readonly keep?: readonly number[];
}

/** An engine's server, and how versions are published to it. */
export interface EngineOptions {
  readonly url: string;
  /** Name of the base model at the server. */
  readonly model: string;
  readonly apiKey?: string | undefined;
  /** The way versions are published to this server; decides where a request's version comes from. */
  readonly method: 'reload' | 'lora';
  /** Version of weights that were never published; without it, an engine that only has these counts as unavailable. */
  readonly baseVersion?: number | null;
  /** Earlier LoRA adapters that stay loaded; 2 by default. */
  readonly keepAdapters?: number;
}

/** Reports the version that requests are sampled by unless they ask for another, and all versions that they can ask for. */
export async function servedVersions(engine: Pick<Engine, 'health'>): Promise<{
  readonly version: number | null;
  readonly versions: readonly number[];
}> {
  const { version, versions } = await engine.health();
  return { version, versions: versions ?? (version === null ? [] : [version]) };
}
