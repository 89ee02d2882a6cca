import type { Engine } from '../../../infra/engine/engine.ts';
import { createContextLength } from '../../../infra/gateway/turns/context-length.ts';
import type { PolicyEngines } from '../../../infra/gateway/turns/policy-engines.ts';

/** Serves every policy by one engine. */
export function createSingleEngine(engine: Engine, engineGraceMs: number): PolicyEngines {
  const served = { engine, contextLength: createContextLength(engine, engineGraceMs) };
  return { of: async () => served, close: async () => {} };
}
