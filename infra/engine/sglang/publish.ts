import { type HttpReply, jsonOf } from '../../http/client.ts';
import type { AdapterRoutes } from '../adapters.ts';
import { unavailable } from '../checks.ts';
import { type EngineConnection, engineTimeouts, expectOk, lacksRoute } from '../connection.ts';
import type { Publication } from '../engine.ts';
import { weightLabel } from '../labels.ts';
import { publishByReload } from '../reload.ts';
import { labelOf } from './health.ts';
import { updateReply } from './wire.ts';

export const adapterRoutes: AdapterRoutes = {
  load: '/load_lora_adapter',
  unload: '/unload_lora_adapter',
  advice: 'start it with --enable-lora, --max-lora-rank and --lora-target-modules',
};

const advice = 'update SGLang, or publish as LoRA adapters';

/**
 * Publishes whole weights from a directory. Running requests end as aborted with the tokens they have, so that each part of
 * a turn belongs to one version, even at servers that report no spans.
 */
export function publishWeights(
  connection: EngineConnection,
  publication: Publication,
  signal?: AbortSignal,
): Promise<void> {
  const label = weightLabel(publication);
  let isPaused = false;
  return publishByReload(connection.url, publication, {
    async isPublished() {
      const current = await labelOf(connection, signal);
      if (current === null) {
        throw unavailable(`publish ${label}: expected weight_version in /model_info, got none; ${advice}`);
      }
      // SGLang does not report whether it is paused, so it may still have to be resumed.
      if (current === label) await resume(connection);
      return current === label;
    },
    async pause() {
      isPaused = await pause(connection);
    },
    load: () =>
      connection.post(
        '/update_weights_from_disk',
        {
          model_path: publication.path,
          weight_version: label,
          abort_all_requests: !isPaused,
          flush_cache: true,
        },
        engineTimeouts.updateMs,
      ),
    isUntouched,
    async complete() {
      const current = await labelOf(connection);
      if (current !== label) throw unavailable(`expected weight_version "${label}", got "${current}"; ${advice}`);
    },
    resume: () => resume(connection),
  });
}

/** Returns false when the server cannot pause: the update itself then aborts the running requests. */
async function pause(connection: EngineConnection): Promise<boolean> {
  const reply = await connection.post('/pause_generation', { mode: 'abort' }, engineTimeouts.updateMs);
  if (lacksRoute(reply)) return false;
  expectOk(reply, 'pause_generation', advice);
  return true;
}

async function resume(connection: EngineConnection): Promise<void> {
  const reply = await connection.post('/continue_generation', {}, engineTimeouts.updateMs);
  if (!lacksRoute(reply)) expectOk(reply, 'continue_generation', advice);
}

/** Whether nothing was read, so that the old weights are intact. SGLang's own rollback of a half-read update is not trusted. */
function isUntouched(reply: HttpReply): boolean {
  if (reply.status < 400 || reply.status >= 500) return false;
  const parsed = updateReply.safeParse(jsonOf(reply));
  if (!parsed.success) return true;
  const { message } = parsed.data;
  return message.startsWith('Failed to get weights iterator') && !message.includes('Failed to update');
}
