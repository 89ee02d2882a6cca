import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Engine } from '../engine/engine.ts';
import { limits } from './limits.ts';
import { Refusal } from './refusal.ts';

/** The engine's context length, asked once; an engine that is away at first is waited for. */
export function createContextLength(engine: Engine, holdMs: number): (signal: AbortSignal) => Promise<number> {
  let known: number | null = null;
  return async (signal) => {
    for (const startedAt = Date.now(); known === null; ) {
      try {
        known = (await engine.health(signal)).contextLength;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof TemperFailure) || error.type !== 'EngineUnavailable') throw error;
        if (Date.now() - startedAt >= holdMs) throw new Refusal('engine-unavailable', error.message, { cause: error });
        await sleep(limits.retryMaxMs / 4, undefined, { signal });
      }
    }
    return known;
  };
}
