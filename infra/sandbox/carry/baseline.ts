import { gunzipSync, gzipSync } from 'node:zlib';
import type { Baseline } from './find-changes.ts';

// This file also runs in Pods, from its text, so it imports no package.

export const packBaseline = (baseline: Baseline): Buffer => gzipSync(JSON.stringify([...baseline]));

/** Reads a packed baseline, which is out of the agent's reach. */
export const unpackBaseline = (packed: Uint8Array): Baseline =>
  new Map(JSON.parse(gunzipSync(packed).toString('utf8')) as readonly [string, string][]);
