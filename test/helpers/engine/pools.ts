import { createEnginePools, type EnginePools } from '../../../infra/engine/pools.ts';
import { defaultPool } from '../../../workflows/contracts/policy.ts';

/** A single pool, whose engine and trainer do not answer. */
export function createPools(publish: 'reload' | 'lora', url = 'http://127.0.0.1:9'): EnginePools {
  const trainer = { url, model: 'policy', reduction: 'sum', apiKey: undefined } as const;
  const engine = { kind: 'vllm', urls: [url], model: 'policy', publish, apiKey: undefined, embedded: false } as const;
  return createEnginePools('/nonexistent/engines.json', { name: defaultPool, ...engine, trainer }, {});
}
