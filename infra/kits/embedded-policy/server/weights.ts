import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { SamplingCore } from '../core.ts';
import { weightsFile } from '../model/weights-file.ts';
import { readPublished, type ServerDirectories } from './directories.ts';

/** Loads the published weights. If they are gone, serves the base model under the label of unpublished weights. */
export async function restorePublished(
  core: SamplingCore,
  directories: ServerDirectories,
  modelDir: string,
): Promise<string> {
  const published = readPublished(directories);
  if (published === null) return modelDir;
  if (existsSync(join(published.path, weightsFile))) {
    await core.sampler.loadWeights(published.path, published.label);
    return published.path;
  }
  await core.sampler.setVersion(published.path === modelDir ? published.label : 'default');
  return modelDir;
}

/**
 * Loads weights into a new sampler, under their name as label. A base model without a weights file is what every sampler
 * starts with. If that fails, the sampler is closed.
 */
export async function loadInto(
  core: SamplingCore,
  { path, name }: { readonly path: string; readonly name: string },
  modelDir: string,
): Promise<SamplingCore> {
  try {
    if (path === realpathSync(modelDir) && !existsSync(join(path, weightsFile))) await core.sampler.setVersion(name);
    else await core.sampler.loadWeights(path, name);
    return core;
  } catch (error) {
    await core.close();
    throw error;
  }
}
