import { shortKey } from '../../workflows/contracts/ids.ts';
import type { PolicyRef } from '../../workflows/contracts/policy.ts';
import type { Engine, EngineOptions } from './engine.ts';
import type { EnginePool } from './pools.ts';
import { createSglangEngine } from './sglang.ts';
import { createVllmEngine } from './vllm.ts';

/** Every inference server that temper can drive; one sibling file each. */
export const engines = {
  vllm: createVllmEngine,
  sglang: createSglangEngine,
} as const satisfies Record<EnginePool['kind'], (options: EngineOptions) => Engine>;

/** Creates one engine per replica of a pool, as the policy of a run uses them; without a run, with what they have in service. */
export function createEngines(pool: EnginePool, runKey?: PolicyRef['runKey']): readonly Engine[] {
  const { kind, urls, model, apiKey, publish: method } = pool;
  const policy = runKey === undefined ? undefined : shortKey(runKey);
  return urls.map((url) => engines[kind]({ url, model, apiKey, method, policy }));
}
