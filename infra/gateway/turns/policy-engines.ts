import type { PolicyRef } from '../../../workflows/contracts/policy.ts';
import { defaultPool } from '../../../workflows/contracts/policy.ts';
import type { Engine } from '../../engine/engine.ts';
import { createEngines } from '../../engine/index.ts';
import type { EnginePools } from '../../engine/pools.ts';
import { createSlotTable, type SlotOptions } from '../../engine/replicas/slots.ts';
import { createReplicas, type ReplicaEvent, type Replicas } from '../../engine/replicas.ts';
import { type ContextLength, createContextLength } from './context-length.ts';

/** The engines that serve a policy, as one, with their context length. */
export interface ServedPolicy {
  readonly engine: Engine;
  readonly contextLength: ContextLength;
}

/** Finds the engines of the policies that sessions sample. */
export interface PolicyEngines {
  /** Returns the engines of a policy; without one, those of the default pool with whatever they have in service. */
  of(policy: PolicyRef | undefined): Promise<ServedPolicy>;
  close(): Promise<void>;
}

export interface PolicyEnginesOptions {
  readonly pools: EnginePools;
  /** The requests that one replica works on at once, and the number of gateways that share it. */
  readonly slots: SlotOptions;
  readonly engineGraceMs: number;
  readonly onEvent: (event: ReplicaEvent) => void;
}

/** The time without requests after which the engines of a policy are no longer probed. The next request opens them again. */
const idleMs = 60_000;
const checkMs = 15_000;

interface KnownPolicy extends ServedPolicy {
  readonly replicas: Replicas;
  readonly use: Use;
}

/** The use of a policy's engines. */
interface Use {
  /** The number of requests that sample now. */
  running: number;
  lastMs: number;
}

/** Presents the replicas of a pool to each policy as one engine. The policies share the slots of the servers. */
export function createPolicyEngines({ pools, slots, engineGraceMs, onEvent }: PolicyEnginesOptions): PolicyEngines {
  const table = createSlotTable(slots);
  const known = new Map<string, KnownPolicy>();

  function closeIdle(): void {
    for (const [key, { replicas, use }] of known) {
      if (use.running > 0 || Date.now() - use.lastMs < idleMs) continue;
      known.delete(key);
      void replicas.close();
    }
  }
  const timer = setInterval(closeIdle, checkMs).unref();

  return {
    async of(policy) {
      const pool = await pools.find(policy?.pool ?? defaultPool);
      // The addresses are part of the key, because the operator may change them.
      const key = [policy?.runKey ?? '', pool.name, pool.kind, pool.model, ...pool.urls].join('\n');
      const found = known.get(key);
      if (found !== undefined) {
        found.use.lastMs = Date.now();
        return found;
      }
      const replicas = createReplicas(createEngines(pool, policy?.runKey), { slots: table, onEvent });
      const use: Use = { running: 0, lastMs: Date.now() };
      const engine = counted(replicas, use);
      const served = { engine, contextLength: createContextLength(engine, engineGraceMs), replicas, use };
      known.set(key, served);
      return served;
    },
    async close() {
      clearInterval(timer);
      await Promise.all([...known.values()].map(({ replicas }) => replicas.close()));
    },
  };
}

/** Notes the use of an engine, so that it is closed only while nothing needs it. */
function counted(engine: Engine, use: Use): Engine {
  return {
    ...engine,
    async *generate(request, signal) {
      use.running += 1;
      try {
        yield* engine.generate(request, signal);
      } finally {
        use.running -= 1;
        use.lastMs = Date.now();
      }
    },
    health(signal) {
      use.lastMs = Date.now();
      return engine.health(signal);
    },
  };
}
