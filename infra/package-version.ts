import { readFileSync } from 'node:fs';
import { z } from 'zod';

const manifest = z.object({ name: z.literal('temper'), version: z.string() });

/** Reads the package's version. Its manifest is one level up in a checkout and two in the compiled package. */
export function packageVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    const found = manifest.safeParse(readJson(new URL(path, import.meta.url)));
    if (found.success) return found.data.version;
  }
  throw new Error('cannot find the package.json of temper above its program; install temper again');
}

function readJson(url: URL): unknown {
  try {
    return JSON.parse(readFileSync(url, 'utf8'));
  } catch {
    return null; // the manifest is at the other level
  }
}
