import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { z } from 'zod';

/**
 * Files of a policy server, all below its root:
 *   checkpoints/<model>/weights/<name>/            weights and optimizer
 *   checkpoints/<model>/sampler_weights/<name>/    weights alone
 *   checkpoints/<model>/model.json                 how the model was created
 *   received.jsonl                                 what changed which model, in order
 *   published.json                                 what the engine serves, also after a restart
 *   held.json                                      what can be sampled by beside it
 */
export interface Places {
  readonly checkpoints: string;
  readonly received: string;
  readonly published: string;
  readonly held: string;
  checkpoint(address: CheckpointAddress): string;
  modelFile(modelId: string): string;
  /** The real path, if it is that of a checkpoint or of the base model; null for any other. */
  confined(path: string): string | null;
}

export interface CheckpointAddress {
  readonly modelId: string;
  readonly kind: 'weights' | 'sampler_weights';
  readonly name: string;
}

export function placesOf(root: string, modelDir: string): Places {
  const checkpoints = join(resolve(root), 'checkpoints');
  return {
    checkpoints,
    received: join(root, 'received.jsonl'),
    published: join(root, 'published.json'),
    held: join(root, 'held.json'),
    checkpoint: ({ modelId, kind, name }) => join(checkpoints, modelId, kind, name),
    modelFile: (modelId) => join(checkpoints, modelId, 'model.json'),
    confined(path) {
      if (!existsSync(path)) return null;
      const real = realpathSync(path);
      const roots = [checkpoints, modelDir].filter((one) => existsSync(one)).map((one) => realpathSync(one));
      return roots.some((one) => real === one || real.startsWith(one + sep)) ? real : null;
    },
  };
}

const published = z.strictObject({ path: z.string(), label: z.string() });
export type Published = z.infer<typeof published>;

export function readPublished(places: Places): Published | null {
  if (!existsSync(places.published)) return null;
  return published.parse(JSON.parse(readFileSync(places.published, 'utf8')));
}

export function writePublished(places: Places, value: Published): Promise<void> {
  return writeAtomically(places.published, JSON.stringify(value));
}

export async function writeAtomically(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const file = await open(`${path}.new`, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}
