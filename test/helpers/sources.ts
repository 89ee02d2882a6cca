import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repositoryRoot = fileURLToPath(new URL('../..', import.meta.url));

export interface ImportOf {
  /** A path from the root for ours (`infra/settings/config.ts`), else the specifier as written. */
  readonly target: string;
  readonly ours: boolean;
  /** Gone at run time. */
  readonly typeOnly: boolean;
}

/** Every TypeScript file of the product, by path from the root. */
export function productSources(): string[] {
  return ['workflows', 'activities', 'workers', 'infra'].flatMap((folder) => sourcesBelow(folder));
}

export function sourcesBelow(folder: string): string[] {
  const directory = join(repositoryRoot, folder);
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts') && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort();
}

export function readSource(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8');
}

/** Static, re-exporting and dynamic imports. The formatter keeps them in the shapes that these expressions expect. */
export function importsOf(path: string): ImportOf[] {
  const text = readSource(path);
  const found: ImportOf[] = [];
  for (const [, type, specifier] of text.matchAll(/^(?:import|export)\s+(type\s)?[^'";]*?from\s+'([^']+)'/gm)) {
    found.push(resolved(path, specifier ?? '', type !== undefined));
  }
  for (const [, bare, dynamic] of text.matchAll(/^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm)) {
    found.push(resolved(path, bare ?? dynamic ?? '', false));
  }
  return found;
}

function resolved(from: string, specifier: string, typeOnly: boolean): ImportOf {
  const ours = specifier.startsWith('.');
  return { target: ours ? normalize(join(dirname(from), specifier)) : specifier, ours, typeOnly };
}
