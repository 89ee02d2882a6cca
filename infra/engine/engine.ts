import type { SessionSettings } from '../../workflows/contracts/rollout.ts';
import type { FinishReason, VersionSpan } from '../../workflows/contracts/trace.ts';
import type { Prompt } from './prompt.ts';

/**
 * An inference server as one run's policy uses it: token ids in, token ids out. Implementations check that ids and logprobs
 * are present, finite and of equal length. They throw the TemperFailure EngineInvalid for a reply that must not be trained
 * on, never a silent zero, and EngineUnavailable for a server that cannot be reached.
 */
export interface Engine {
  readonly url: string;
  /**
   * Yields sampled tokens as they come; ends after the event that carries `finishReason`. Aborting the signal aborts the
   * generation.
   */
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<GenerateEvent>;
  health(signal?: AbortSignal): Promise<EngineHealth>;
  /** Puts a policy version into service; safe to repeat. Later requests sample with it. */
  publish(publication: Publication, signal?: AbortSignal): Promise<void>;
  /**
   * Keeps a version that is in service loaded for requests that name it, whatever is published later, until a publication
   * no longer lists it. Returns false when the engine cannot, or no longer serves the version.
   */
  pinVersion(version: number, signal?: AbortSignal): Promise<boolean>;
}

export interface GenerateRequest {
  readonly requestId: string;
  /** Requests of one session share a prefix: among several replicas, they are sent to the same one. */
  readonly session?: string;
  readonly prompt: Prompt;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** -1 switches it off. */
  readonly topK: number;
  readonly stopTokenIds: readonly number[];
  readonly seed?: number;
  /**
   * The version to sample with; the newest by default. An engine that loads versions as adapters throws VersionNotServed when
   * this one is not loaded. An engine that serves whole weights and has not pinned the version samples with the weights in
   * service; the spans of the reply name them.
   */
  readonly policyVersion?: SessionSettings['policyVersion'];
  /**
   * Learns that the request waits for a slot or at a paused engine, and that it has got its slot. Tokens that come say that it no
   * longer waits.
   */
  readonly onHeld?: (isHeld: boolean) => void;
  /**
   * Learns the version that the server was last known to serve when the request reached it; null if none. A request that is aborted
   * never gets its last event, which would state the versions.
   */
  readonly onVersion?: (version: number | null) => void;
}

export interface GenerateEvent {
  readonly tokenIds: readonly number[];
  /** Natural logs, one per token id. */
  readonly logprobs: readonly number[];
  /** Present only on the last event. */
  readonly finishReason?: FinishReason;
  /** Spans over all sampled tokens of the request; present only on the last event. */
  readonly versions?: readonly VersionSpan[];
}

export interface EngineHealth {
  readonly ready: boolean;
  readonly paused: boolean;
  /** The last published policy version; null before the first. */
  readonly version: number | null;
  /** Every version that requests can name; omitted when that is only the latest one. */
  readonly versions?: readonly number[];
  /** Null when the engine does not report it. */
  readonly contextLength: number | null;
  /** Omitted when the engine does not report it. */
  readonly capacity?: EngineCapacity;
}

/** The load that an engine can process at the same time; null where it does not report a limit. */
export interface EngineCapacity {
  readonly requests: number | null;
  /** Tokens that fit its KV cache. */
  readonly kvTokens: number | null;
}

export interface Publication {
  readonly version: number;
  /** Name under which the trainer saved the weights. */
  readonly name: string;
  /** Path at which the engine finds them: a directory of weights, or a LoRA adapter. */
  readonly path: string;
  readonly method: 'reload' | 'lora';
  /** Versions that running requests still use: they stay loaded, if the engine can load several. */
  readonly keep?: readonly number[];
  /** Other policies that are still sampled: adapters of any further policy are unloaded. Default: none is unloaded. */
  readonly others?: readonly string[];
}

/** An engine's server, and how versions are published to it. */
export interface EngineOptions {
  readonly url: string;
  /** Name of the base model at the server. */
  readonly model: string;
  readonly apiKey?: string | undefined;
  /** The way versions are published to this server; decides where a request's version comes from. */
  readonly method: 'reload' | 'lora';
  /** The end of the key of the run whose policy it serves to this caller. Default: whichever policy is in service. */
  readonly policy?: string | undefined;
  /** Version of weights that were never published; without it, an engine that has only these counts as unavailable. */
  readonly baseVersion?: number | null;
  /** Earlier LoRA adapters that stay loaded; 2 by default. */
  readonly keepAdapters?: number;
}

/** Reports the version that samples requests unless they name another, and all versions that they can name. */
export async function servedVersions(engine: Pick<Engine, 'health'>): Promise<{
  readonly version: number | null;
  readonly versions: readonly number[];
}> {
  const { version, versions } = await engine.health();
  return { version, versions: versions ?? (version === null ? [] : [version]) };
}
