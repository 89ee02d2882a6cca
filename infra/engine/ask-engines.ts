import { defaultPool, type PolicyRef } from '../../workflows/contracts/policy.ts';
import type { Engine } from './engine.ts';
import { createEngines } from './index.ts';
import type { EnginePools } from './pools.ts';
import { createSlotTable } from './replicas/slots.ts';
import { createReplicas } from './replicas.ts';

/**
 * Lets a caller without a gateway ask the engines of a policy something. The replicas are opened for each question, so that a
 * process that rarely asks sends them no probes in between.
 */
export async function askEngines<Answer>(
  pools: EnginePools,
  policy: PolicyRef | null,
  ask: (engine: Engine) => Promise<Answer>,
): Promise<Answer> {
  const pool = await pools.find(policy?.pool ?? defaultPool);
  const slots = createSlotTable({ requestsAtOnce: null, sharers: 1 });
  const engine = createReplicas(createEngines(pool, policy?.runKey), { slots, onEvent: () => {} });
  try {
    return await ask(engine);
  } finally {
    await engine.close();
  }
}
