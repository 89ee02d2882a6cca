import type { Snapshot } from '../../../workflows/contracts/snapshot.ts';
import { blamingBrokenPrograms } from '../../sandbox/broken-programs.ts';
import { type CarriedHeader, isWithin, type WrittenChanges } from '../../sandbox/changes.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { drain } from '../../sandbox/tar-entries.ts';
import { usingWhatAgentLeft } from '../../sandbox/what-agent-left.ts';
import type { Store } from '../../store/store.ts';
import { flagCarried } from '../flags/beyond-diff.ts';
import { type DiffToJudge, runTests } from '../judge-diff.ts';
import { type Judged, judgeRefused, judgeRun } from '../judged.ts';
import { patientAttempts } from '../late.ts';
import { directoriesAbove } from '../patch/patch-parts.ts';
import { type BasePrograms, parseBase, readBase } from '../programs/base-programs.ts';
import { restorePrograms } from '../programs/restore-programs.ts';
import { filterPatch } from '../protection/filter-patch.ts';
import { matcher, matcherAbove } from '../protection/patterns.ts';
import { ownModules } from '../protection/restore-protected.ts';
import { flagEmpty, openSnapshot } from './archive.ts';
import { givenToGrader } from './give-to-grader.ts';
import { type ProtectedFiles, readProtected, writeProtected } from './protected-files.ts';

export interface SnapshotToJudge extends DiffToJudge {
  readonly snapshot: Snapshot;
}

/** Carries an agent's changes into a fresh sandbox, except those of protected files, and runs the hidden tests there. */
export async function judgeSnapshot(
  sandbox: Sandbox,
  store: Store,
  input: SnapshotToJudge,
  signal: AbortSignal,
): Promise<Judged> {
  const { task, diff, snapshot, workdir, timeoutMs, path, network, subject, attempt } = input;
  const patch = await store.get(diff.patch.digest);
  const protection = { ...task.protection, ownModules: ownModules(patch) };
  const toJudge = { patch, protection, subject };
  const empty = flagEmpty(snapshot, tooLarge);
  if (empty !== null) return judgeRefused(store, empty.evidence, { ...toJudge, beyond: [empty] });
  const patterns = task.protection.paths;
  const base = await parseBase(await readBase(sandbox, { task, workdir, path }, signal));
  const originals = await readProtected(sandbox, { workdir, patterns }, signal);
  const { changes, flags } = flagCarried(await openSnapshot(store, snapshot), workdir);
  const carried = { sandbox, failedBefore: attempt > patientAttempts };
  const carry = async () =>
    (await write(sandbox, toWrite(sandbox, changes, originals, { workdir, patterns, base }), signal)) ??
    writeProtected(sandbox, { files: originals, attempt }, signal);
  const refusal = await usingWhatAgentLeft(carried, carry, signal);
  if (refusal !== null) {
    return judgeRefused(store, `the snapshot could not be carried into a fresh sandbox: ${refusal}`, toJudge);
  }
  const programs = await blamingBrokenPrograms(sandbox, () =>
    restorePrograms(sandbox, { base, task, attempt }, signal),
  );
  if (programs.refusal !== null) {
    return judgeRefused(store, programs.refusal, { ...toJudge, beyond: [...flags(), ...programs.flags] });
  }
  const run = await blamingBrokenPrograms(sandbox, async () => {
    const { usedMb: diskBeforeMb } = await sandbox.diskUsage();
    return runTests(sandbox, task, { workdir, timeoutMs, attempt, diskBeforeMb, path, network }, signal);
  });
  const told = run.exposure === undefined ? run : { ...run, exposure: 'snapshot' as const };
  return judgeRun(
    store,
    told,
    { ...toJudge, beyond: [...flags(), ...programs.flags] },
    { restored: restoredOf(patch, patterns) },
  );
}

const tooLarge = (above: number): string =>
  `all that the agent changed in its sandbox is above ${Math.round(above / 2 ** 20)} MB (TEMPER_SNAPSHOT_MB), above 500,000 files, or their names are above 32 MB`;

async function write(sandbox: Sandbox, changes: WrittenChanges, signal: AbortSignal): Promise<string | null> {
  if (sandbox.changes === undefined) throw new Error(`expected a sandbox that takes changes, got ${sandbox.kind}`);
  return sandbox.changes.write(changes, signal);
}

/** Returns the changes that the tests get: without those of protected files, and readable for an account without capabilities. */
function toWrite(
  { twoUids }: Sandbox,
  changes: WrittenChanges,
  originals: ProtectedFiles,
  of: Protected & { readonly base: BasePrograms | null },
): WrittenChanges {
  const free = withoutProtected(changes, originals, of);
  if (!twoUids) return free;
  const { workdir, names } = originals;
  const protectedPaths = names.map((name) => `${workdir}/${Buffer.from(name, 'latin1').toString('utf8')}`);
  const open = of.base?.directories.flatMap(({ isOwn, path, real }) => (isOwn ? [path, real ?? path] : [])) ?? [];
  return givenToGrader(free, {
    workdir,
    protectedPaths,
    open: open.map((one) => Buffer.from(one, 'latin1').toString()),
  });
}

interface Protected {
  readonly workdir: string;
  readonly patterns: readonly string[];
}

/**
 * Leaves out changes of protected files, and whatever would take the place of a directory above them, such as a link to a
 * directory with other files.
 */
function withoutProtected(
  changes: WrittenChanges,
  { workdir: real, names }: ProtectedFiles,
  { workdir, patterns }: Protected,
): WrittenChanges {
  if (patterns.length === 0) return changes;
  const isProtected = matcher(patterns);
  const isAbove = matcherAbove(patterns);
  const directories = new Set(names.flatMap(directoriesAbove));
  const inside = `${real}/`;
  const isOfTask = ({ path, type }: CarriedHeader): boolean => {
    if (type === 'directory') return false;
    if (!path.startsWith(inside)) return isWithin(real, path) || isWithin(workdir, path);
    const name = Buffer.from(path.slice(inside.length)).toString('latin1');
    return (
      isProtected(name) || directories.has(name) || (type === 'symlink' && (isProtected(`${name}/`) || isAbove(name)))
    );
  };
  const entries = async function* (): WrittenChanges['entries'] {
    for await (const entry of changes.entries) {
      if (isOfTask(entry.header)) await drain(entry.content);
      else yield entry;
    }
  };
  return { ...changes, entries: entries() };
}

const namedPaths = 5;
const pathLength = 120;

function restoredOf(patch: Uint8Array, patterns: readonly string[]) {
  const { restored } = filterPatch(patch, patterns, { mergeSections: false });
  const paths = restored
    .slice(0, namedPaths)
    .map((name) => Buffer.from(name, 'latin1').toString('utf8').slice(0, pathLength));
  return restored.length === 0 ? null : { count: restored.length, paths };
}
