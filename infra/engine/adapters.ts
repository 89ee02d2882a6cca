import { z } from 'zod';
import { explanationOf, type HttpReply } from '../http/client.ts';
import { invalid, unavailable } from './checks.ts';
import { bodyOf, type EngineConnection, engineTimeouts, failureOf, lacksRoute } from './connection.ts';
import type { Publication } from './engine.ts';
import { adapterName, adapterPrefix, policyOfAdapter, versionOfAdapter } from './labels.ts';

/** The routes by which a server loads LoRA adapters, and advice on how to start it so that it does. */
export interface AdapterRoutes {
  readonly load: string;
  readonly unload: string;
  readonly advice: string;
}

const modelList = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      root: z.string().nullish(),
      parent: z.string().nullish(),
      owned_by: z.string().nullish(),
      created: z.number().nullish(),
      max_model_len: z.number().int().nullish(),
    }),
  ),
});

/** The policy and base model whose adapters are published, how many earlier ones stay, and how they are loaded. */
export interface AdapterTarget {
  readonly model: string;
  readonly policy: string | undefined;
  readonly keep: number;
  readonly routes: AdapterRoutes;
}

/**
 * Publishes a version as a LoRA adapter under a name of its own, without a pause and with exact attribution. Adapters of
 * later versions are left over from a run that was rolled back, and are unloaded. Of the earlier ones, the last `keep` stay
 * for requests in flight, and so do the versions that the publication lists.
 */
export async function publishByLora(
  connection: EngineConnection,
  target: AdapterTarget,
  publication: Publication,
  signal?: AbortSignal,
): Promise<void> {
  const { model, policy, keep, routes } = target;
  const unload = (adapter: string) => unloadAdapter(connection, routes, adapter, signal);
  const prefix = adapterPrefix(model, policy);
  const name = adapterName(prefix, publication.version);
  const loaded = await adaptersOf(connection, prefix, signal);
  const same = loaded.find((adapter) => adapter.name === name);
  if (same !== undefined && same.path !== publication.path) await unload(name);
  if (same?.path !== publication.path) {
    const body = { lora_name: name, lora_path: publication.path };
    const reply = await connection.post(routes.load, body, engineTimeouts.updateMs, signal);
    const alreadyLoaded = reply.status === 400 && /already/i.test(explanationOf(reply));
    if (reply.status !== 200 && !alreadyLoaded) throw loadFailure(reply, routes, name, publication.path);
  }
  const pinned = new Set(publication.keep);
  const earlier = loaded
    .filter(({ version }) => version < publication.version && !pinned.has(version))
    .sort((a, b) => b.version - a.version);
  const stale = [...loaded.filter(({ version }) => version > publication.version), ...earlier.slice(keep)];
  for (const adapter of stale) await unload(adapter.name);
  if (policy === undefined || publication.others === undefined) return;
  const used = new Set([policy, ...publication.others]);
  for (const { id } of (await modelsOf(connection, signal)).data) {
    const owner = policyOfAdapter(model, id);
    if (owner !== null && !used.has(owner)) await unload(id);
  }
}

export interface Adapter {
  readonly name: string;
  readonly version: number;
  readonly path: string | null;
  /** Seconds since the epoch; null when the engine does not report it. */
  readonly loadedAt: number | null;
}

/** Whether the adapter of this version is loaded. */
export async function isLoaded(
  connection: EngineConnection,
  { prefix, version }: { readonly prefix: string; readonly version: number },
  signal?: AbortSignal,
): Promise<boolean> {
  return (await adaptersOf(connection, prefix, signal)).some((adapter) => adapter.version === version);
}

/** Returns temper's own adapters whose names begin so, as the engine lists them. */
export async function adaptersOf(
  connection: EngineConnection,
  prefix: string,
  signal?: AbortSignal,
): Promise<readonly Adapter[]> {
  const { data } = await modelsOf(connection, signal);
  return data.flatMap(({ id, root, created }) => {
    const version = versionOfAdapter(prefix, id);
    return version === null ? [] : [{ name: id, version, path: root ?? null, loadedAt: created ?? null }];
  });
}

export async function modelsOf(connection: EngineConnection, signal?: AbortSignal) {
  const parsed = modelList.safeParse(bodyOf(await connection.get('/v1/models', signal), 'models'));
  if (!parsed.success) throw invalid(`models: unreadable list: ${parsed.error.message}`);
  return parsed.data;
}

export async function unloadAdapter(
  connection: EngineConnection,
  { unload }: AdapterRoutes,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  const reply = await connection.post(unload, { lora_name: name }, engineTimeouts.updateMs, signal);
  if (reply.status !== 200 && reply.status !== 404) throw failureOf(reply, `unload adapter ${name}`);
}

function loadFailure(reply: HttpReply, { advice }: AdapterRoutes, name: string, path: string): Error {
  if (lacksRoute(reply)) return unavailable(`load adapter ${name}: the engine loads no adapters; ${advice}`);
  const reason = explanationOf(reply);
  return reply.status >= 500
    ? unavailable(`load adapter ${name} from ${path}: ${reason}`)
    : invalid(`load adapter ${name}: expected an adapter at ${path} as the engine sees it, got: ${reason}`);
}
