import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './sources.ts';

/** The folder beside the checkout that may hold data and reference programs too large, or not ours, to be committed. */
const folder = join(ROOT, '../shared');

/** A file or folder that only some machines have, and the reason to name where it is missing. */
export type OptionalData =
  | { readonly available: true; readonly path: string }
  | { readonly available: false; readonly path: string; readonly reason: string };

/** Looks for optional data by its path below the folder, such as `data/chat-templates.json`. */
export function optionalData(path: string): OptionalData {
  const full = join(folder, path);
  if (existsSync(full)) return { available: true, path: full };
  return { available: false, path: full, reason: `this machine lacks the optional data ${path}` };
}
