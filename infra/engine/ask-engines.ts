import type { Engine } from './engine.ts';
import { createReplicatedEngine, type EnginesOptions } from './index.ts';

/**
 * Lets a caller without a gateway ask the engines something. The replicas are opened for each question, so that a process
 * that rarely asks sends them no probes in between.
 */
export async function askEngines<Answer>(
  options: EnginesOptions,
  ask: (engine: Engine) => Promise<Answer>,
): Promise<Answer> {
  const engine = createReplicatedEngine({ ...options, capacity: null, gateways: 1, onEvent: () => {} });
  try {
    return await ask(engine);
  } finally {
    await engine.close();
  }
}
