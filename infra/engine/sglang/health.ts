import { modelsOf } from '../adapters.ts';
import { unavailable } from '../checks.ts';
import { bodyOf, type EngineConnection, lacksRoute } from '../connection.ts';
import type { EngineCapacity, EngineHealth } from '../engine.ts';
import type { EngineServer } from '../http-engine.ts';
import { adapterPrefix, versionOfAdapter, versionOfLabel } from '../labels.ts';
import { modelInfo, serverInfo } from './wire.ts';

/** Short, because sizes come from the scheduler, which answers no request while it loads weights. */
const sizesTimeoutMs = 2_000;

/** The sizes that a server reports; they do not change while it runs. */
export interface ServerSizes {
  readonly maxInputTokens: number | null;
  readonly capacity: EngineCapacity;
}

/**
 * Reads what the HTTP process alone knows. Not `/health`, which samples a token: a paused server would fail it, and a server
 * whose scheduler has died ends as a whole. SGLang does not report whether generation is paused.
 */
export async function healthOf(
  connection: EngineConnection,
  { model, policy, method }: Pick<EngineServer, 'model' | 'policy' | 'method'>,
  sizes: ServerSizes | null,
  signal?: AbortSignal,
): Promise<EngineHealth> {
  const label = await labelOf(connection, signal);
  const { data } = await modelsOf(connection, signal);
  const adapters = data.flatMap(({ id }) => versionOfAdapter(adapterPrefix(model, policy), id) ?? []);
  // After a reload the base model is named by the path of its weights: it is the one without a parent.
  const base = data.find(({ parent }) => parent === null || parent === undefined);
  if (base === undefined) throw unavailable(`${connection.url}: expected a base model in /v1/models, got none`);
  const known = [base.max_model_len, sizes?.maxInputTokens].filter((length) => typeof length === 'number');
  return {
    ready: true,
    paused: false,
    version: method === 'lora' ? largest(adapters) : label === null ? null : versionOfLabel(label, policy),
    ...(method === 'lora' && { versions: adapters }),
    contextLength: known.length === 0 ? null : Math.min(...known),
    ...(sizes === null ? {} : { capacity: sizes.capacity }),
  };
}

/** Returns the label of the weights; null when the server has none. */
export async function labelOf(connection: EngineConnection, signal?: AbortSignal): Promise<string | null> {
  const reply = await getEither(connection, ['/model_info', '/get_model_info'], signal);
  const parsed = modelInfo.safeParse(bodyOf(reply, 'model_info'));
  return parsed.success ? (parsed.data.weight_version ?? null) : null;
}

/** Returns null when the server does not report its sizes at the moment. */
export async function sizesOf(connection: EngineConnection, signal?: AbortSignal): Promise<ServerSizes | null> {
  const limit = AbortSignal.timeout(sizesTimeoutMs);
  const either = signal === undefined ? limit : AbortSignal.any([signal, limit]);
  try {
    const reply = await getEither(connection, ['/server_info', '/get_server_info'], either);
    const { max_req_input_len: maxInputTokens, internal_states: states } = serverInfo.parse(
      bodyOf(reply, 'server_info'),
    );
    const kvTokens = states?.map((state) => state.memory_usage?.token_capacity);
    const requests = states?.map((state) => state.effective_max_running_requests_per_dp);
    return {
      maxInputTokens: maxInputTokens ?? null,
      capacity: { requests: sumOf(requests), kvTokens: sumOf(kvTokens) },
    };
  } catch {
    signal?.throwIfAborted();
    return null;
  }
}

/** Calls a route by its current name, or by its name before 2025-10. */
async function getEither(connection: EngineConnection, paths: readonly [string, string], signal?: AbortSignal) {
  const [path, formerPath] = paths;
  const reply = await connection.get(path, signal);
  return lacksRoute(reply) ? connection.get(formerPath, signal) : reply;
}

/** Returns null unless each of the values is known. */
function sumOf(values: readonly (number | null | undefined)[] = []): number | null {
  const known = values.filter((value) => typeof value === 'number');
  return known.length === 0 || known.length < values.length ? null : known.reduce((sum, value) => sum + value, 0);
}

function largest(values: readonly number[]): number | null {
  return values.length === 0 ? null : Math.max(...values);
}
