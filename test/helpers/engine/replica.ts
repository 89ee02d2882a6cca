import type { EngineCapacity, EngineHealth, GenerateRequest } from '../../../infra/engine/engine.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { createScriptedEngine, type ScriptedEngine, type Step } from './scripted-engine.ts';

/** A scripted engine whose health a test can change. */
export interface ScriptedReplica extends ScriptedEngine {
  readonly probes: number;
  state: 'ready' | 'starting' | 'refused' | 'silent';
  version: number | null;
  paused: boolean;
  capacity: EngineCapacity | undefined;
}

export function createScriptedReplica(
  url: string,
  script: (request: GenerateRequest, index: number) => Step | Promise<Step> = () => ({ kind: 'say', ids: [65] }),
): ScriptedReplica {
  const engine = createScriptedEngine({ script });
  let probes = 0;
  const replica: ScriptedReplica = {
    ...engine,
    url,
    state: 'ready',
    version: 1,
    paused: false,
    capacity: undefined,
    get probes() {
      return probes;
    },
    get running() {
      return engine.running;
    },
    get hanging() {
      return engine.hanging;
    },
    async health(signal): Promise<EngineHealth> {
      probes += 1;
      const { state, version, paused, capacity } = replica;
      if (state === 'refused') throw new TemperFailure('EngineUnavailable', `${url} refuses connections`);
      if (state === 'silent') await silence(signal);
      const known = { ready: state === 'ready', paused, version, contextLength: 100_000 };
      return capacity === undefined ? known : { ...known, capacity };
    },
  };
  return replica;
}

function silence(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
