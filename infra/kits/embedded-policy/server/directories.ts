import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { z } from 'zod';
import { makeDirectory, syncDirectory } from '../model/atomic-directory.ts';

/**
 * The files of a policy server, all below its root:
 *
 *   checkpoints/<model>/weights/<name>/            weights and optimizer
 *   checkpoints/<model>/sampler_weights/<name>/    weights alone
 *   checkpoints/<model>/model.json                 the request that created the model
 *   received.jsonl, received.old.jsonl             the last requests that changed a model, in order
 *   published.json                                 the version in service, also after a restart
 *   held.json                                      the versions that are pinned beside it
 *   policies/<policy>/                             published.json and held.json of a policy that requests name
 */
export interface ServerDirectories {
  readonly checkpoints: string;
  readonly received: string;
  readonly published: string;
  readonly pinned: string;
  checkpoint(address: CheckpointAddress): string;
  modelFile(modelId: string): string;
  /** Returns the same directories with the files of one policy. */
  ofPolicy(policy: string): ServerDirectories;
  /** Returns the real path if it is that of a checkpoint or of the base model; null for any other. */
  confine(path: string): string | null;
}

export interface CheckpointAddress {
  readonly modelId: string;
  readonly kind: 'weights' | 'sampler_weights';
  readonly name: string;
}

export function serverDirectories(root: string, modelDir: string, policy?: string): ServerDirectories {
  const checkpoints = join(resolve(root), 'checkpoints');
  const own = policy === undefined ? root : join(root, 'policies', policy);
  return {
    checkpoints,
    received: join(root, 'received.jsonl'),
    published: join(own, 'published.json'),
    pinned: join(own, 'held.json'),
    checkpoint: ({ modelId, kind, name }) => join(checkpoints, modelId, kind, name),
    ofPolicy: (name) => serverDirectories(root, modelDir, name),
    modelFile: (modelId) => join(checkpoints, modelId, 'model.json'),
    confine(path) {
      if (!existsSync(path)) return null;
      const real = realpathSync(path);
      const allowed = [checkpoints, modelDir].filter((one) => existsSync(one)).map((one) => realpathSync(one));
      return allowed.some((one) => real === one || real.startsWith(one + sep)) ? real : null;
    },
  };
}

const modelInfo = z.object({ base_model: z.string(), lora_config: z.object({ rank: z.number() }) });
/** The part of the request that created a model which other models may need. */
export type ModelInfo = z.infer<typeof modelInfo>;

export function readModelInfo({ modelFile }: ServerDirectories, modelId: string): ModelInfo {
  return modelInfo.parse(JSON.parse(readFileSync(modelFile(modelId), 'utf8')));
}

const publishedWeights = z.strictObject({ path: z.string(), label: z.string() });
export type PublishedWeights = z.infer<typeof publishedWeights>;

export function readPublished({ published }: ServerDirectories): PublishedWeights | null {
  if (!existsSync(published)) return null;
  return publishedWeights.parse(JSON.parse(readFileSync(published, 'utf8')));
}

export function writePublished({ published }: ServerDirectories, weights: PublishedWeights): Promise<void> {
  return writeAtomically(published, JSON.stringify(weights));
}

/** Replaces a file as a whole, durably. */
export async function writeAtomically(path: string, text: string): Promise<void> {
  makeDirectory(dirname(path));
  const file = await open(`${path}.new`, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  syncDirectory(dirname(path));
}
