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

/** The time without requests after which the engines of a policy are no longer probed: its run has ended. */
const idleMs = 3_600_000;

interface KnownPolicy extends ServedPolicy {
  readonly engine: Replicas;
  usedAtMs: number;
}

/** Presents the replicas of a pool to each policy as one engine. The policies share the slots of the servers. */
export function createPolicyEngines({ pools, slots, engineGraceMs, onEvent }: PolicyEnginesOptions): PolicyEngines {
  const table = createSlotTable(slots);
  const known = new Map<string, KnownPolicy>();

  function closeIdle(nowMs: number): void {
    for (const [key, { engine, usedAtMs }] of known) {
      if (nowMs - usedAtMs < idleMs) continue;
      known.delete(key);
      void engine.close();
    }
  }

  return {
    async of(policy) {
      const pool = await pools.find(policy?.pool ?? defaultPool);
      const nowMs = Date.now();
      // The addresses are part of the key, because the operator may change them.
      const key = [policy?.runKey ?? '', pool.name, pool.kind, pool.model, ...pool.urls].join('\n');
      const found = known.get(key);
      if (found !== undefined) {
        found.usedAtMs = nowMs;
        return found;
      }
      closeIdle(nowMs);
      const engine = createReplicas(createEngines(pool, policy?.runKey), { slots: table, onEvent });
      const served = { engine, contextLength: createContextLength(engine, engineGraceMs), usedAtMs: nowMs };
      known.set(key, served);
      return served;
    },
    async close() {
      await Promise.all([...known.values()].map(({ engine }) => engine.close()));
    },
  };
}

/** Serves every policy by one engine. */
export function createSingleEngine(engine: Engine, engineGraceMs: number): PolicyEngines {
  const served = { engine, contextLength: createContextLength(engine, engineGraceMs) };
  return { of: async () => served, close: async () => {} };
}
