import type { Hono } from 'hono';
import { z } from 'zod';
import type { Places } from '../places.ts';
import type { Held } from './held.ts';
import { bodyOf, Refusal } from './refusal.ts';

const name = z.string().regex(/^[\w.-]{1,200}$/, { error: 'expected a name of letters, digits, ".", "_", "-"' });
const loadBody = z.object({ lora_name: name, lora_path: z.string() });
const unloadBody = z.object({ lora_name: name });

/** vLLM's routes for adapters. What they load here are whole weights: a checkpoint of this server, or the base model. */
export function addHeldRoutes(app: Hono, held: Held, places: Places, modelName: string): void {
  app.post('/v1/load_lora_adapter', async (c) => {
    const { lora_name, lora_path } = await bodyOf(c, loadBody);
    if (lora_name === modelName)
      throw new Refusal(400, `lora_name: expected another name than the model's, ${modelName}`);
    const real = places.confined(lora_path);
    if (real === null) {
      throw new Refusal(400, `lora_path: expected a checkpoint below ${places.checkpoints}, got ${lora_path}`);
    }
    await held.hold(lora_name, real);
    return c.text(`Success: LoRA adapter '${lora_name}' added successfully.`);
  });
  app.post('/v1/unload_lora_adapter', async (c) => {
    const { lora_name } = await bodyOf(c, unloadBody);
    if (!(await held.release(lora_name))) {
      throw new Refusal(404, `The lora adapter '${lora_name}' cannot be found.`);
    }
    return c.text(`Success: LoRA adapter '${lora_name}' removed successfully.`);
  });
}
