import type { Engine, EngineOptions } from './engine.ts';
import { createReplicas, type ReplicaEvent, type Replicas } from './replicas.ts';
import { createSglangEngine } from './sglang.ts';
import { createVllmEngine } from './vllm.ts';

/** Every inference server that temper can drive; one sibling file each. */
export const engines = {
  vllm: createVllmEngine,
  sglang: createSglangEngine,
} as const satisfies Record<string, (options: EngineOptions) => Engine>;

/** The replicas of one engine: equal servers, one URL each. */
export interface EnginesOptions extends Omit<EngineOptions, 'url'> {
  readonly kind: keyof typeof engines;
  readonly urls: readonly string[];
}

/** Creates one engine per replica. */
export function createEngines({ kind, urls, ...options }: EnginesOptions): readonly Engine[] {
  return urls.map((url) => engines[kind]({ ...options, url }));
}

export interface ReplicatedEngineOptions extends EnginesOptions {
  /** The number of requests that a replica works on at once; null: derived from what it reports of its KV cache. */
  readonly capacity: number | null;
  /** Gateways that send requests to the same replicas; each takes an equal share of their capacity. */
  readonly gateways: number;
  readonly onEvent: (event: ReplicaEvent) => void;
}

/** Presents all replicas as one engine to one gateway; versions are published to each replica separately. */
export function createReplicatedEngine(options: ReplicatedEngineOptions): Replicas {
  const { capacity, gateways, onEvent, ...engine } = options;
  return createReplicas(createEngines(engine), { requestsAtOnce: capacity, sharers: gateways, onEvent });
}
