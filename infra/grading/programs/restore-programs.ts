import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import type { Flag } from '../../../workflows/contracts/flags.ts';
import { packTree } from '../../sandbox/files.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { retryLate } from '../late.ts';
import { pathsForRoom } from '../protection/make-room.ts';
import { matcher } from '../protection/patterns.ts';
import type { GradedTask } from '../task.ts';
import {
  type BasePrograms,
  directoriesIn,
  filesIn,
  type KeptFile,
  limits,
  pathWithoutOwn,
  split,
  UnreadablePrograms,
} from './base-programs.ts';
import { decide, type NowPrograms } from './decide.ts';
import { nowScript, putScript } from './scripts.ts';

export interface ProgramsToRestore {
  readonly base: BasePrograms | null;
  readonly task: Pick<GradedTask, 'protection' | 'artifacts'>;
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
  /** Takes the flags before anything is changed, after which no further attempt could raise them. */
  onFlags?(flags: readonly Flag[]): Promise<void>;
}

export interface RestoredPrograms {
  /** The reason for which the agent has made it impossible, otherwise null. */
  readonly refusal: string | null;
  readonly flags: readonly Flag[];
}

/**
 * Gives the tests the programs that they would find without the agent's work, by the PATH, in directories that the agent can write.
 * Call it when the work is in the sandbox, before the tests. Throws EvaluationTimedOut.
 */
export async function restorePrograms(
  sandbox: Pick<Sandbox, 'exec'>,
  { base, task, attempt, onFlags }: ProgramsToRestore,
  signal: AbortSignal,
): Promise<RestoredPrograms> {
  if (base === null) {
    await onFlags?.([]);
    return { refusal: null, flags: [] };
  }
  const path = pathWithoutOwn(base);
  const run = (argv: readonly [string, ...string[]], stdin: Buffer): Promise<ExecResult> =>
    sandbox.exec({ account: 'agent', cwd: '/', env: {}, argv, stdin, ...limits }, signal);
  const own = base.directories.filter(({ isOwn }) => isOwn);
  const asked = own.flatMap((one) => [utf8(one.path), one.isPackage ? 'package' : 'plain']);
  const wanted = Buffer.from([...base.files.keys()].map((file) => `${file}\n`).join(''), 'latin1');
  const read = await run(['sh', '-c', nowScript, 'programs', path, ...asked], wanted);
  retryLate(read, attempt, step);
  if (isImpossible(read)) return refused(read);
  const now = await parseNow(read.stdout);
  if (now === null) return refused(read);
  const { put, remove, evidence } = decide(base, now, freeOf(base, task));
  const flags = evidence.map((text): Flag => ({ trick: 'program-shadow', evidence: utf8(text) }));
  await onFlags?.(flags);
  if (put.size === 0 && remove.length === 0) return { refusal: null, flags };
  const waiting = {
    names: pathsForRoom([...remove, ...put.keys()].map((file) => file.slice(1))),
    tar: await packed(put),
  };
  const tree = new Map(Object.entries(waiting).map(([name, bytes]) => [name, { mode: 0o644, bytes }]));
  const written = await run(['sh', '-c', putScript, 'programs', path], await packTree(tree, { uid: 0, gid: 0 }));
  retryLate(written, attempt, step);
  if (!isImpossible(written)) return { refusal: null, flags };
  const { refusal, flags: ofRefusal } = refused(written);
  return { refusal, flags: [...ofRefusal, ...flags] };
}

const step = "restoring the programs that the tests find in the agent's directories";
const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');

const isImpossible = ({ exitCode, timedOut, truncated }: ExecResult): boolean =>
  exitCode !== 0 || timedOut || truncated;

/** Refuses the work. It is flagged for any reason, since nothing else shows that the tests did not run. */
function refused({ stderr }: ExecResult): RestoredPrograms {
  const reason = stderr.toString('utf8').trim().slice(-2000);
  const refusal = `the programs that the tests find by their PATH could not be restored: ${reason}`;
  return { refusal, flags: [{ trick: 'program-shadow', evidence: refusal }] };
}

/** Parses the output of the script; null if it did not print it, as where an agent that is root replaced its programs. */
async function parseNow(output: Buffer): Promise<NowPrograms | null> {
  try {
    const { words, tar } = split(output);
    return { directories: directoriesIn(words), files: await filesIn(tar) };
  } catch (error) {
    if (error instanceof UnreadablePrograms) return null;
    throw error;
  }
}

/** Returns a function that says which paths the task leaves to the agent: by a pattern with a `!`, or as an artifact. */
function freeOf(
  { workdir }: BasePrograms,
  { protection, artifacts }: ProgramsToRestore['task'],
): (path: string) => boolean {
  const isRevoked = matcher(protection.paths.flatMap((one) => (one.startsWith('!') ? [one.slice(1)] : [])));
  const named = new Set(artifacts.map((path) => Buffer.from(path).toString('latin1')));
  return (path) => named.has(path) || (path.startsWith(`${workdir}/`) && isRevoked(path.slice(workdir.length + 1)));
}

/** Packs files by their paths without the leading slash. */
async function packed(files: ReadonlyMap<string, KeptFile>): Promise<Buffer> {
  if (files.size === 0) return Buffer.alloc(0);
  const tar = pack();
  const all = buffer(tar);
  for (const [path, { mode, target, bytes }] of files) {
    const name = utf8(path.slice(1));
    if (target === null) tar.entry({ name, mode, uid: 0, gid: 0 }, bytes);
    else tar.entry({ name, type: 'symlink', linkname: utf8(target), uid: 0, gid: 0 });
  }
  tar.finalize();
  return all;
}
