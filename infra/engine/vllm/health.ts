import { modelsOf } from '../adapters.ts';
import { invalid } from '../checks.ts';
import type { EngineConnection } from '../connection.ts';
import type { EngineCapacity, EngineHealth } from '../engine.ts';
import type { EngineServer } from '../http-engine.ts';
import { adapterPrefix, versionOfAdapter, versionOfLabel } from '../labels.ts';
import { isPaused, labelOf } from './publish.ts';

export async function healthOf(
  connection: EngineConnection,
  { model, policy, method }: Pick<EngineServer, 'model' | 'policy' | 'method'>,
  signal?: AbortSignal,
): Promise<EngineHealth> {
  const { status } = await connection.get('/health', signal);
  const { data } = await modelsOf(connection, signal);
  const base = data.find(({ id }) => id === model);
  if (base === undefined) {
    const served = data.map(({ id }) => id).join(', ');
    throw invalid(`${connection.url}: expected it to serve "${model}", got ${served}; correct the engine's model name`);
  }
  const adapters = data.flatMap(({ id }) => versionOfAdapter(adapterPrefix(model, policy), id) ?? []);
  const version = method === 'lora' ? newest(adapters) : await labelledVersion(connection, policy, signal);
  return {
    ready: status === 200,
    paused: await isPaused(connection, signal),
    version,
    ...(method === 'lora' && { versions: adapters }),
    ...(method === 'reload' && adapters.length > 0 && { versions: withServed(version, adapters) }),
    contextLength: base.max_model_len ?? null,
  };
}

/** Adds the version in service to the pinned whole weights, which are listed under the names of adapters. */
function withServed(version: number | null, pinned: readonly number[]): readonly number[] {
  return version === null || pinned.includes(version) ? pinned : [version, ...pinned];
}

function newest(versions: readonly number[]): number | null {
  return versions.length === 0 ? null : Math.max(...versions);
}

async function labelledVersion(
  connection: EngineConnection,
  policy: string | undefined,
  signal?: AbortSignal,
): Promise<number | null> {
  const label = await labelOf(connection, signal);
  return label === null ? null : versionOfLabel(label, policy);
}

/**
 * Reads the size of the KV cache from vLLM's metrics, the only place that has it: labels of an info gauge, with one line for
 * each data-parallel engine. vLLM does not report the number of requests that it runs at once.
 */
export async function capacityOf(connection: EngineConnection, signal?: AbortSignal): Promise<EngineCapacity> {
  const reply = await connection.get('/metrics', signal);
  if (reply.status !== 200) return { requests: null, kvTokens: null };
  return { requests: null, kvTokens: kvTokensIn(reply.bytes.toString('utf8')) };
}

function kvTokensIn(metrics: string): number | null {
  let sum = 0;
  for (const [, labels = ''] of metrics.matchAll(/^vllm:cache_config_info\{(.*)\}/gm)) {
    const tokens = labelIn(labels, 'kv_cache_size_tokens');
    sum += tokens > 0 ? tokens : labelIn(labels, 'num_gpu_blocks') * labelIn(labels, 'block_size');
  }
  return sum > 0 ? sum : null;
}

/** Returns 0 for a label that is missing or says "None". */
function labelIn(labels: string, name: string): number {
  return Number(new RegExp(`(?:^|,)${name}="(\\d+)"`).exec(labels)?.[1] ?? 0);
}
