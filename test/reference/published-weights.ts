import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { policyName } from '../../workflows/contracts/ids.ts';

/** Returns the digest of the adapter that was published as this version of a run's policy; null if `checkpoints` has none. */
export async function publishedDigest(checkpoints: string, runKey: string, version: number): Promise<string | null> {
  const directory = join(checkpoints, 'unpacked');
  const ending = `-${policyName(runKey, version)}`;
  const name = (await readdir(directory)).find((one) => one.endsWith(ending));
  if (name === undefined) return null;
  const bytes = await readFile(join(directory, name, 'adapter_model.safetensors'));
  return createHash('sha256').update(bytes).digest('hex');
}
