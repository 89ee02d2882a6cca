import type { AdapterRoutes } from '../adapters.ts';
import { bodyOf, type EngineConnection, engineTimeouts, expectOk, lacksRoute } from '../connection.ts';
import type { Publication } from '../engine.ts';
import { weightLabel } from '../labels.ts';
import { publishByReload } from '../reload.ts';
import { weightInfo } from './wire.ts';

export const adapterRoutes: AdapterRoutes = {
  load: '/v1/load_lora_adapter',
  unload: '/v1/unload_lora_adapter',
  advice: 'start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True',
};

const devMode = 'start it with VLLM_SERVER_DEV_MODE=1';

/** Publishes whole weights from a directory; running requests are frozen meanwhile and continue on the new weights. */
export function publishWeights(
  connection: EngineConnection,
  publication: Publication,
  signal?: AbortSignal,
): Promise<void> {
  const label = weightLabel(publication);
  const update = (path: string, body: unknown) => connection.post(path, body, engineTimeouts.updateMs, signal);
  return publishByReload(connection.url, publication, {
    isPublished: async () => (await labelOf(connection, signal)) === label && !(await isPaused(connection, signal)),
    pause: async () => expectOk(await update('/pause?mode=keep', {}), 'pause', devMode),
    load: () => update('/collective_rpc', { method: 'reload_weights', kwargs: { weights_path: publication.path } }),
    isUntouched: ({ status }) => status === 400 || status === 404,
    async complete() {
      expectOk(await update('/update_weight_version', { new_version: label }), 'update_weight_version', devMode);
      // The cache of frozen requests was computed under the old weights. Unless it is computed again, their logprobs
      // belong to no version.
      expectOk(await update('/reset_prefix_cache?reset_running_requests=true', {}), 'reset_prefix_cache', devMode);
    },
    resume: async () => expectOk(await update('/resume', {}), 'resume', devMode),
  });
}

/** Returns the label of the weights; null when the server has none (no dev mode, or an older release). */
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
