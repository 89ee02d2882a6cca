import { readFileSync } from 'node:fs';
import { z } from 'zod';

const manifest = z.object({ name: z.literal('temper'), version: z.string() });

/** The package's version: its manifest is two levels up in the checkout, three in the compiled package. */
export function packageVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    const found = manifest.safeParse(readJson(new URL(path, import.meta.url)));
    if (found.success) return found.data.version;
  }
  throw new Error('expected the package.json of temper above its program, found none; install it again');
}

function readJson(url: URL): unknown {
  try {
    return JSON.parse(readFileSync(url, 'utf8'));
  } catch {
    return null; // not there: the other place is
  }
}
