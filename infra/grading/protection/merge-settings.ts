import { setImmediate as turn } from 'node:timers/promises';
import { sectionedFiles } from './sections.ts';
import { mostSettingsBytes, type SettingsText } from './settings-files.ts';

/**
 * Merges settings files by their names, and returns those that have to be written: their text, or null for those to remove. A file
 * that is no longer one, or for whose text no room is left in all of them together, becomes that of the base commit.
 */
export async function mergeSettings(
  names: readonly string[],
  bases: ReadonlyMap<string, SettingsText>,
  nows: ReadonlyMap<string, SettingsText>,
): Promise<ReadonlyMap<string, string | null>> {
  const merged = new Map<string, string | null>();
  let left = mostSettingsBytes;
  for (const name of names) {
    // An agent may have written thousands, during which this process has other work.
    await turn();
    const base = bases.get(name) ?? null;
    const now = nows.get(name);
    const merge = sectionedFiles[name.slice(name.lastIndexOf('/') + 1)];
    const wanted = now === undefined || merge === undefined ? base : merge(base, now);
    const text = wanted !== now && (wanted?.length ?? 0) > left ? base : wanted;
    if (text === now) continue;
    merged.set(name, text);
    left -= text === base ? 0 : (text?.length ?? 0);
  }
  return merged;
}
