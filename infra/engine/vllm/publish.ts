import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { explanationOf } from '../../http/client.ts';
import type { Publication } from '../engine.ts';
import { invalid, unavailable } from './checks.ts';
import { bodyOf, type EngineConnection, engineTimeouts, lacksRoute, refusal } from './connection.ts';
import { adapterName, versionOfAdapter, weightLabel } from './labels.ts';
import { modelList, weightInfo } from './wire.ts';

/**
 * Whole weights from a directory. Not transactional at the engine: once `reload_weights` was sent, any failure leaves it
 * paused, with agents waiting, until a publication succeeds. Repeating is safe at every point.
 */
export async function publishByReload(
  connection: EngineConnection,
  publication: Publication,
  signal?: AbortSignal,
): Promise<void> {
  const label = weightLabel(publication);
  if ((await labelOf(connection, signal)) === label && !(await isPaused(connection, signal))) return;
  const update = (path: string, body: unknown) => connection.post(path, body, engineTimeouts.updateMs, signal);

  expectOk(await update('/pause?mode=keep', {}), 'pause');
  const reloaded = await attempt(() =>
    update('/collective_rpc', { method: 'reload_weights', kwargs: { weights_path: publication.path } }),
  );
  if (reloaded instanceof Error) throw quarantined(connection, publication, reloaded.message, reloaded);
  if (reloaded.status === 400 || reloaded.status === 404) {
    // Refused before anything was read: the old weights are whole.
    expectOk(await update('/resume', {}), 'resume');
    throw invalid(`publish ${label}: expected weights at ${publication.path}, got: ${explanationOf(reloaded)}`);
  }
  if (reloaded.status !== 200) throw quarantined(connection, publication, explanationOf(reloaded));

  const rest = await attempt(async () => {
    expectOk(await update('/update_weight_version', { new_version: label }), 'update_weight_version');
    // Frozen requests hold cache of the old weights: have it computed again, else their logprobs belong to no version.
    expectOk(await update('/reset_prefix_cache?reset_running_requests=true', {}), 'reset_prefix_cache');
    expectOk(await update('/resume', {}), 'resume');
  });
  if (rest instanceof Error) throw quarantined(connection, publication, rest.message, rest);
}

/**
 * A LoRA adapter under a name of its own per version: no pause, exact attribution. Adapters of later versions are left-overs
 * of a rolled-back run and go; of the earlier ones the last `keep` stay, for requests that are under way.
 */
export async function publishByLora(
  connection: EngineConnection,
  model: string,
  publication: Publication,
  keep: number,
  signal?: AbortSignal,
): Promise<void> {
  const name = adapterName(model, publication.version);
  const loaded = await adaptersOf(connection, model, signal);
  const same = loaded.find((adapter) => adapter.name === name);
  if (same !== undefined && same.path !== publication.path) await unload(connection, name, signal);
  if (same?.path !== publication.path) {
    const body = { lora_name: name, lora_path: publication.path };
    const reply = await connection.post('/v1/load_lora_adapter', body, engineTimeouts.updateMs, signal);
    const alreadyLoaded = reply.status === 400 && /already/i.test(explanationOf(reply));
    if (reply.status !== 200 && !alreadyLoaded) throw loraRefusal(reply, name, publication.path);
  }
  const earlier = loaded.filter(({ version }) => version < publication.version).sort((a, b) => b.version - a.version);
  const stale = [...loaded.filter(({ version }) => version > publication.version), ...earlier.slice(keep)];
  for (const adapter of stale) await unload(connection, adapter.name, signal);
}

export interface Adapter {
  readonly name: string;
  readonly version: number;
  readonly path: string | null;
}

/** Our adapters of this base model, as the engine lists them. */
export async function adaptersOf(
  connection: EngineConnection,
  model: string,
  signal?: AbortSignal,
): Promise<readonly Adapter[]> {
  const { data } = await modelsOf(connection, signal);
  return data.flatMap(({ id, root }) => {
    const version = versionOfAdapter(model, id);
    return version === null ? [] : [{ name: id, version, path: root ?? null }];
  });
}

export async function modelsOf(connection: EngineConnection, signal?: AbortSignal) {
  const parsed = modelList.safeParse(bodyOf(await connection.get('/v1/models', signal), 'models'));
  if (!parsed.success) throw invalid(`models: unreadable list: ${parsed.error.message}`);
  return parsed.data;
}

/** The label of the weights; null where the server has none (no dev mode, or older). */
export async function labelOf(connection: EngineConnection, signal?: AbortSignal): Promise<string | null> {
  const reply = await connection.get('/weight_info', signal);
  if (lacksRoute(reply)) return null;
  const parsed = weightInfo.safeParse(bodyOf(reply, 'weight_info'));
  return parsed.success ? parsed.data.weight_version : null;
}

export async function isPaused(connection: EngineConnection, signal?: AbortSignal): Promise<boolean> {
  const reply = await connection.get('/is_paused', signal);
  if (lacksRoute(reply)) return false;
  const body = bodyOf(reply, 'is_paused');
  return typeof body === 'object' && body !== null && 'is_paused' in body && body.is_paused === true;
}

async function unload(connection: EngineConnection, name: string, signal?: AbortSignal): Promise<void> {
  const reply = await connection.post('/v1/unload_lora_adapter', { lora_name: name }, engineTimeouts.updateMs, signal);
  if (reply.status !== 200 && reply.status !== 404) throw refusal(reply, `unload adapter ${name}`);
}

function loraRefusal(reply: Parameters<typeof refusal>[0], name: string, path: string): Error {
  if (lacksRoute(reply)) {
    return unavailable(
      `load adapter ${name}: the engine loads no adapters; start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True`,
    );
  }
  const said = explanationOf(reply);
  return reply.status >= 500
    ? unavailable(`load adapter ${name} from ${path}: ${said}`)
    : invalid(`load adapter ${name}: expected an adapter at ${path} as the engine sees it, got: ${said}`);
}

function expectOk(reply: Parameters<typeof refusal>[0], what: string): void {
  if (reply.status === 200) return;
  if (lacksRoute(reply)) {
    throw unavailable(`${what}: the engine has no such route; start it with VLLM_SERVER_DEV_MODE=1`);
  }
  throw refusal(reply, what);
}

function quarantined(
  connection: EngineConnection,
  publication: Publication,
  said: string,
  cause?: Error,
): TemperFailure {
  const message = `engine ${connection.url}: publishing ${weightLabel(publication)} from ${publication.path} failed half-way: ${said}; it stays paused until a publication succeeds`;
  return new TemperFailure('EngineQuarantined', message, cause === undefined ? undefined : { cause });
}

async function attempt<T>(work: () => Promise<T>): Promise<T | Error> {
  try {
    return await work();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
