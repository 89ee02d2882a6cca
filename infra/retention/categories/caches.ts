import { existsSync, readdirSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Category, dayMs, type Entry } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { interruptedRemovals, treeEntry } from '../trees.ts';

const keptMs = 30 * dayMs;

interface Family {
  readonly directory: string;
  readonly names: RegExp;
}

/** Directories of the cache whose entries are made again when they are needed, with the names of those entries. */
const families: readonly Family[] = [
  { directory: '.', names: /^runtime-[0-9a-f]{16}$/ },
  { directory: 'agents', names: /^[a-z-]+-[0-9a-f]{16}$/ },
  { directory: 'bundles', names: /^[0-9a-f]{32}\.js$/ },
  { directory: 'node', names: /^\d+\.\d+\.\d+-/ },
  { directory: 'temporal', names: /^\d+\.\d+\.\d+.*-/ },
];

/** The directory of compiled code, with a directory of files for each version of Node. */
const compiledDirectory = 'compiled';

/** The part of the cache that stacks make again by themselves. Its entries are touched with each use. */
export const caches: Category = {
  name: 'caches',
  keeps:
    'what was used in the last 30 days, or is used by a process now: runtimes, installed agents, workflow bundles, Node and Temporal of other versions; compiled code that was written in the last 30 days; a stack that needs one again makes it again',
  where: ({ cacheDir }) =>
    [...families.flatMap((family) => placesOf(family, cacheDir)), compiledDirectory].map((name) =>
      join(cacheDir, name),
    ),
  async *entries({ cacheDir, nowMs }) {
    const used = await pathsInUse(cacheDir);
    for (const { directory, names } of families) {
      const parent = join(cacheDir, directory);
      yield* interruptedRemovals(parent);
      for (const { name, path, changedAtMs } of await listDirectory(parent)) {
        if (!names.test(name)) continue;
        const stays = nowMs - changedAtMs <= keptMs || used.some((one) => one === path || one.startsWith(`${path}/`));
        yield treeEntry(path, stays ? null : 'unused for 30 days', join(directory, name));
      }
    }
    yield* compiledCode(join(cacheDir, compiledDirectory), nowMs);
  },
};

/** Returns the names in the cache that a family takes up: its directory, or its entries where it shares the cache's own. */
function placesOf({ directory, names }: Family, cacheDir: string): readonly string[] {
  if (directory !== '.') return [directory];
  return existsSync(cacheDir) ? readdirSync(cacheDir).filter((name) => names.test(name)) : [];
}

/**
 * Yields the compiled code of modules. Every path and version of a module leaves a file, and nothing records that a file is
 * used, so each goes by the time it was written.
 */
async function* compiledCode(parent: string, nowMs: number): AsyncIterable<Entry> {
  for (const { name, path, isDirectory } of await listDirectory(parent)) {
    if (!isDirectory) continue;
    for (const file of await listDirectory(path)) {
      const stays = nowMs - file.changedAtMs <= keptMs;
      yield treeEntry(
        file.path,
        stays ? null : 'written more than 30 days ago',
        join(compiledDirectory, name, file.name),
      );
    }
  }
}

/** Returns the paths below a directory that processes run or have mounted, as far as this user may see. */
async function pathsInUse(directory: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const used = new Set<string>();
  for (const pid of pids) {
    const mounts = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    const program = await readlink(`/proc/${pid}/exe`).catch(() => '');
    for (const path of [program, ...mounts.split(/[ \n]/)]) if (path.startsWith(`${directory}/`)) used.add(path);
  }
  return [...used];
}
