import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { parseDataSetAddress } from '../../data-sets/address.ts';
import { entryOf, sinceName, useName, usesFolder } from '../../data-sets/uses.ts';
import { type Category, dayMs, type Entry, type RetentionContext } from '../category.ts';
import { listDirectory, lstatIfThere } from '../directories.ts';
import { interruptedRemovals, treeEntry } from '../trees.ts';

const keptMs = 90 * dayMs;
const unused = 'no data set that needs it was used for 90 days';

/** The downloads of published data sets, and the repositories of their tasks. The commit that a branch stood for stays. */
export const dataSets: Category = {
  name: 'data sets',
  keeps:
    'downloads of data sets that were used in the last 90 days, or that a schedule or an open run, sweep or regrade of this stack names; the commit that a branch stood for, so that a later download gets the same files',
  where: (context) => [rootOf(context)],
  async *entries(context) {
    const root = rootOf(context);
    const since = await lstatIfThere(join(root, usesFolder, sinceName));
    if (since === null) return;
    const uses = await usesOf(context);
    const needed = downloadsOf(uses);
    const wereAllRecorded = context.nowMs - since.mtimeMs > keptMs;
    for (const parent of await parentsOf(root)) {
      yield* interruptedRemovals(parent);
      for (const { path, changedAtMs } of await listDirectory(parent)) {
        const name = relative(root, path);
        if (entryOf(name) !== name) continue;
        const isOld = wereAllRecorded && context.nowMs - changedAtMs > keptMs;
        yield unlessUsed(context, await treeEntry(path, isOld && !needed.has(name) ? unused : null, name));
      }
    }
    // A record of uses goes after what it names, so that a killed pass loses no record.
    for (const { name, path, isLive } of uses) yield treeEntry(path, isLive ? null : unused, `${usesFolder}/${name}`);
  },
};

const rootOf = ({ cacheDir }: Pick<RetentionContext, 'cacheDir'>): string => join(cacheDir, 'data-sets');

interface Use {
  readonly name: string;
  readonly path: string;
  readonly downloads: readonly string[];
  /** Whether the data set was used lately, or may be used again without anyone asking for it. */
  readonly isLive: boolean;
}

async function usesOf(context: RetentionContext): Promise<readonly Use[]> {
  const uses: Use[] = [];
  for (const { name, path, changedAtMs } of await listDirectory(join(rootOf(context), usesFolder))) {
    if (name === sinceName) continue;
    const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
    const isLive = context.nowMs - changedAtMs <= keptMs || (await namedNow(context)).has(name);
    uses.push({ name, path, downloads: lines, isLive });
  }
  return uses;
}

const downloadsOf = (uses: readonly Use[]): ReadonlySet<string> =>
  new Set(uses.flatMap(({ isLive, downloads: paths }) => (isLive ? paths : [])));

/** The names of the uses of all data sets that schedules and open workflows name. */
async function namedNow({ knowledge }: RetentionContext): Promise<ReadonlySet<string>> {
  const inputs = [...(await knowledge.scheduleInputs()), ...(await knowledge.openInputs())];
  const addresses = inputs.flatMap((input) => [...input.matchAll(/"([a-z0-9-]+:(?:[^"\\]|\\.)+)"/g)]);
  return new Set(addresses.flatMap(([quoted]) => nameOf(String(JSON.parse(quoted))) ?? []));
}

function nameOf(address: string): string | null {
  try {
    const parsed = parseDataSetAddress(address);
    return parsed === null ? null : useName(parsed);
  } catch {
    // It looks like an address, and no data set has it.
    return null;
  }
}

/** The directories that hold downloads: of commits of the hub, those of the data sets' ids. */
async function parentsOf(root: string): Promise<readonly string[]> {
  const below = async (directory: string): Promise<readonly string[]> =>
    (await listDirectory(directory)).filter(({ isDirectory }) => isDirectory).map(({ path }) => path);
  const owners = await below(join(root, 'hub'));
  const ids = await Promise.all(owners.map(below));
  return [...['urls', 'unpacked', 'repositories'].map((folder) => join(root, folder)), ...owners, ...ids.flat()];
}

/** Leaves what a data set has been used with since the pass began. */
function unlessUsed(context: RetentionContext, entry: Entry): Entry {
  return {
    ...entry,
    remove: async () => (downloadsOf(await usesOf(context)).has(entry.name) ? 0 : entry.remove()),
  };
}
