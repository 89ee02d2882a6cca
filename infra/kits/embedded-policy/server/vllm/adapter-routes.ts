import type { Hono } from 'hono';
import { z } from 'zod';
import type { ServerDirectories } from '../directories.ts';
import { readBody, VllmError } from './errors.ts';
import type { PinnedVersions } from './pinned-versions.ts';

const name = z.string().regex(/^[\w.-]{1,200}$/, { error: 'expected a name of letters, digits, ".", "_", "-"' });
const loadBody = z.object({ lora_name: name, lora_path: z.string() });
const unloadBody = z.object({ lora_name: name });

/** vLLM's routes for adapters. Here they pin whole weights: a checkpoint of this server, or the base model. */
export function addAdapterRoutes(
  app: Hono,
  pinned: PinnedVersions,
  directories: ServerDirectories,
  modelName: string,
): void {
  app.post('/v1/load_lora_adapter', async (c) => {
    const { lora_name, lora_path } = await readBody(c, loadBody);
    if (lora_name === modelName) {
      throw new VllmError(400, `lora_name: expected another name than the model's, ${modelName}`);
    }
    const real = directories.confine(lora_path);
    if (real === null) {
      throw new VllmError(400, `lora_path: expected a checkpoint below ${directories.checkpoints}, got ${lora_path}`);
    }
    await pinned.pin(lora_name, real);
    return c.text(`Success: LoRA adapter '${lora_name}' added successfully.`);
  });
  app.post('/v1/unload_lora_adapter', async (c) => {
    const { lora_name } = await readBody(c, unloadBody);
    if (!(await pinned.unpin(lora_name))) {
      throw new VllmError(404, `The lora adapter '${lora_name}' cannot be found.`);
    }
    return c.text(`Success: LoRA adapter '${lora_name}' removed successfully.`);
  });
}
