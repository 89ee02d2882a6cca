import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { exists } from '../../process/exists.ts';
import { type Category, hourMs, type RetentionContext } from '../category.ts';
import { type Found, listDirectory } from '../directories.ts';
import { interruptedRemovals, treeEntry } from '../trees.ts';
import { trainerJournals } from './records.ts';

/** The number of newest versions of a run that are kept: a lost trainer loads the last, and its save may be incomplete. */
const keptLast = 3;
/** Every version whose number this divides is kept as well, so that a run can be looked at afterwards. */
const keptEvery = 10;
/** The length of the end of a run's key that names its versions. */
const keyEnd = 12;
/** The minimum age: a version is saved, published and proved within this time. */
const graceMs = hourMs;
/** The file that keeps a checkpoint, put into its directory by hand or by a program that exports it. */
const keepFile = 'keep';

/**
 * The name that temper gives a version, with the end of the run's key: `72edfce9a69c-v12`, perhaps as an archive; and a checkpoint
 * within the warm-up: `72edfce9a69c-w300`.
 */
const versionName = /^(?:.*-)?([0-9a-f]{12})-([vw])(\d+)(?:\.tar\.gz)?$/;

interface Saved extends Found {
  readonly run: string;
  /** The number of a version, or of a step of the warm-up. */
  readonly version: number;
  readonly isWarmUp: boolean;
  readonly kind: string;
}

/** Checkpoints and sampler weights of the policy. What other clients of the trainer saved has other names and stays. */
export const checkpoints: Category = {
  name: 'checkpoints',
  keeps:
    'of each run the last three versions, every tenth and version 0; versions that an open sweep evaluates, that a schedule names, or that the policy server serves; what holds a file named `keep`; sampler weights likewise. `--older-than` removes all of a run that ended before, but for the latter three',
  where: (context) => [context.checkpoints],
  async *entries(context) {
    const { knowledge, nowMs, signal } = context;
    const all: Saved[] = [];
    for await (const directory of directoriesOf(context)) {
      yield* interruptedRemovals(directory);
      all.push(...(await savedIn(directory, relative(context.checkpoints, directory))));
    }
    if (all.length === 0) return;
    const pinned = await knowledge.pinnedVersions();
    const served = await servedPaths(context);
    const runs = await runsOf(context);
    for (const saved of all) {
      signal.throwIfAborted();
      const { path, version, run } = saved;
      const stays =
        runs.get(run) === undefined ||
        (runs.get(run) === 'kept' && isKept(saved, all)) ||
        nowMs - saved.changedAtMs < graceMs ||
        (pinned.has(version) && !saved.isWarmUp) ||
        served.some((one) => one.endsWith(`/${relative(context.checkpoints, path)}`)) ||
        (await exists(join(path, keepFile)));
      const why =
        runs.get(run) === 'expired' ? 'its run ended before the given age' : 'newer versions of its run exist';
      yield treeEntry(path, stays ? null : why, relative(context.checkpoints, path));
    }
  },
};

/** Yields the directories in which the embedded policy server and SkyRL save: one per model, and one of unpacked archives. */
async function* directoriesOf({ checkpoints: root }: RetentionContext): AsyncIterable<string> {
  yield join(root, 'unpacked');
  for (const { path, isDirectory } of await listDirectory(root)) {
    if (!isDirectory) continue;
    yield path;
    yield join(path, 'weights');
    yield join(path, 'sampler_weights');
  }
}

async function savedIn(directory: string, kind: string): Promise<readonly Saved[]> {
  return (await listDirectory(directory)).flatMap((found) => {
    const [, run, sort, version] = versionName.exec(found.name) ?? [];
    // A trainer that lost its model saves later versions under another one, so the model is no part of the kind.
    const kindOnly = kind.replace(/^[^/]*\//, '');
    const isWarmUp = sort === 'w';
    return run === undefined ? [] : [{ ...found, run, version: Number(version), isWarmUp, kind: kindOnly }];
  });
}

/**
 * The runs of this home by the end of their keys, and whether their trainer's journals are kept. The directory may also hold
 * checkpoints of another stack, about which this one knows nothing.
 */
async function runsOf(context: RetentionContext): Promise<ReadonlyMap<string, 'kept' | 'expired'>> {
  const runs = new Map<string, 'kept' | 'expired'>();
  for await (const { name, expired } of trainerJournals.entries(context)) {
    const key = /^([0-9a-f-]{36})\.json$/.exec(name)?.[1];
    if (key !== undefined) runs.set(key.slice(-keyEnd), expired === null ? 'kept' : 'expired');
  }
  return runs;
}

/** Whether a checkpoint of a run that is kept is kept itself. One of the warm-up is not needed once there is a version. */
function isKept({ run, kind, version, isWarmUp }: Saved, all: readonly Saved[]): boolean {
  const versions = all.filter((one) => one.run === run && one.kind === kind && !one.isWarmUp);
  if (isWarmUp) return versions.length === 0;
  if (version % keptEvery === 0) return true;
  const newer = new Set(versions.filter((one) => one.version > version).map((one) => one.version));
  return newer.size < keptLast;
}

/** Returns the paths of the weights that the embedded policy server serves or is pinned to. */
async function servedPaths({ paths }: RetentionContext): Promise<readonly string[]> {
  const policies = (await listDirectory(join(paths.policy, 'policies'))).map(({ path }) => path);
  const files = await Promise.all(
    [paths.policy, ...policies].flatMap((directory) =>
      ['published.json', 'held.json'].map((name) =>
        readFile(join(directory, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return '{}';
          throw error;
        }),
      ),
    ),
  );
  return files.flatMap((text) => [...text.matchAll(/"path":"([^"]+)"/g)].map(([, path = '']) => path));
}
