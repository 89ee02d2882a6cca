import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import type { Snapshot } from '../../../workflows/contracts/snapshot.ts';
import { type CarriedEntry, isWithin, type WrittenChanges } from '../../sandbox/changes.ts';
import { collect } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { addEntry } from '../../sandbox/tar-entries.ts';
import type { Store } from '../../store/store.ts';
import { type DiffToJudge, runTests } from '../judge-diff.ts';
import { type Judged, judgeRefused, judgeRun } from '../judged.ts';
import { retryLate } from '../late.ts';
import { parseBase, readBase } from '../programs/base-programs.ts';
import { restorePrograms } from '../programs/restore-programs.ts';
import { flagEmpty, openSnapshot } from '../snapshot/archive.ts';
import { requireEntrypoint, startEntrypoint } from '../workspace/entrypoint.ts';
import { awaitHealthy } from '../workspace/health-check.ts';
import { placeableAmong } from './placeable.ts';

const setupMs = 300_000;
const limits = { timeoutMs: 120_000, maxOutputBytes: 64 * 1024 } as const;

export interface ArtifactsToJudge extends DiffToJudge {
  /** The artifacts of the agent; absent for a task that no agent has worked at. */
  readonly artifacts: Snapshot | undefined;
  /** Called once the sandbox is set up, before the artifacts come into it. */
  onSetUp(): void;
}

/** Puts an agent's artifacts into a sandbox of the tests' own image, and runs the tests that the image holds. */
export async function judgeArtifacts(
  sandbox: Sandbox,
  store: Store,
  input: ArtifactsToJudge,
  signal: AbortSignal,
): Promise<Judged> {
  const { task, diff, artifacts, workdir, timeoutMs, path, network, subject, attempt } = input;
  const patch = await store.get(diff.patch.digest);
  const { protection, healthCheck, env } = task;
  await startEntrypoint(sandbox, task, workdir, signal);
  const deadlineMs = performance.now() + setupMs;
  if (healthCheck !== null) await awaitHealthy(sandbox, healthCheck, { workdir, env, deadlineMs }, signal);
  await requireEntrypoint(sandbox, task);
  const base = await parseBase(await readBase(sandbox, { task, workdir, path }, signal));
  input.onSetUp();
  const empty = artifacts === undefined ? null : flagEmpty(artifacts, tooLarge);
  if (empty !== null) return judgeRefused(store, empty.evidence, { patch, protection, subject, beyond: [empty] });
  const refusal = artifacts === undefined ? null : await place(sandbox, store, { artifacts, workdir, attempt }, signal);
  if (refusal !== null) return judgeRefused(store, refusal, { patch, protection, subject });
  const programs = await restorePrograms(sandbox, { base, task, attempt }, signal);
  const toJudge = { patch, protection, subject, beyond: programs.flags };
  if (programs.refusal !== null) return judgeRefused(store, programs.refusal, toJudge);
  const { usedMb: diskBeforeMb } = await sandbox.diskUsage();
  const run = await runTests(sandbox, task, { workdir, timeoutMs, attempt, diskBeforeMb, path, network }, signal);
  return judgeRun(store, run, toJudge);
}

const tooLarge = (above: number): string =>
  `the artifacts are larger than ${above / 2 ** 20} MB, or tar was killed or took longer than two minutes three times`;

interface Placed {
  readonly artifacts: Snapshot;
  readonly workdir: string;
  readonly attempt: number;
}

/** Writes the artifacts at their paths. Returns why that is impossible, or null. Throws EvaluationTimedOut. */
async function place(
  sandbox: Sandbox,
  store: Store,
  { artifacts, workdir, attempt }: Placed,
  signal: AbortSignal,
): Promise<string | null> {
  const changes = await openSnapshot(store, artifacts);
  const { roots, directories, entries } = await readArtifacts(changes);
  await emptyDirectories(
    sandbox,
    roots.filter((root) => directories.has(root)),
    signal,
  );
  // The workdir belongs to the agent's account, and all other files belong to the account of the tests.
  for (const account of ['grader', 'agent'] as const) {
    const own = entries.filter(({ header }) => isWithin(header.path, workdir) === (account === 'agent'));
    const stdin = await packed(own);
    const argv = ['tar', '-x', '-f', '-', '-C', '/'] as const;
    const put = await sandbox.exec({ account, cwd: '/', env: {}, argv: [...argv], stdin, ...limits }, signal);
    retryLate(put, attempt);
    if (put.exitCode !== 0 || put.timedOut) return `the artifacts could not be placed: ${put.stderr}`.slice(0, 2000);
  }
  return null;
}

interface Artifact {
  readonly header: CarriedEntry['header'];
  readonly bytes: Buffer;
}

/** Reads the artifacts that may be placed: an agent that is root may have put anything into the archive. */
async function readArtifacts({ added: roots, entries }: WrittenChanges) {
  const all: Artifact[] = [];
  for await (const { header, content } of entries) all.push({ header, bytes: await collect(Readable.from(content)) });
  const directories = new Set(all.flatMap(({ header }) => (header.type === 'directory' ? [header.path] : [])));
  const placeable = placeableAmong(all, roots);
  const isLink = ({ header }: Artifact): boolean => header.type === 'symlink';
  return { roots, directories, entries: [...placeable.filter((one) => !isLink(one)), ...placeable.filter(isLink)] };
}

async function packed(entries: readonly Artifact[]): Promise<Buffer> {
  const tar = pack();
  const all = buffer(tar);
  for (const { header, bytes } of entries) {
    const { path, type, mode, mtime, target } = header;
    const common = { name: path.slice(1), type, mode: readable(type, mode), mtime, size: bytes.byteLength };
    await addEntry(tar, { ...common, ...(target !== undefined && { linkname: target }) }, Readable.from([bytes]));
  }
  tar.finalize();
  return all;
}

const readable = (type: CarriedEntry['header']['type'], mode: number): number => {
  if (type === 'directory') return 0o755;
  return (mode & 0o111) === 0 ? 0o644 : 0o755;
};

/** Empties the directories that the artifacts replace, as far as the accounts may. */
async function emptyDirectories(sandbox: Sandbox, paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (paths.length === 0) return;
  const script = 'for path; do [ ! -d "$path" ] || find "$path" -mindepth 1 -delete 2>/dev/null; done; true';
  for (const account of ['agent', 'grader'] as const) {
    const argv = ['sh', '-c', script, 'sh', ...paths] as const;
    await sandbox.exec({ account, cwd: '/', env: {}, argv: [...argv], ...limits }, signal);
  }
}
