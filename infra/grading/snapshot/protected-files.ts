import { packTree } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { retryLate } from '../late.ts';
import { makeRoom, pathsForRoom, waitingRoom } from '../protection/make-room.ts';
import { matcher } from '../protection/patterns.ts';
import { requireSuccess } from '../workspace/require-success.ts';

/*
 * The protected files of a workspace as the task has them, on their way over what an agent made of them.
 */

const limits = { timeoutMs: 120_000, maxOutputBytes: 128 * 2 ** 20 } as const;

export interface ProtectedFiles {
  /** The workdir, by its path without links. */
  readonly workdir: string;
  /** The paths of the files, relative to the workdir, in latin-1. */
  readonly names: readonly string[];
  /** The files as a tar; empty if there are none. */
  readonly tar: Buffer;
}

/** Prints the working directory without links, and the files in it. */
const listScript = 'pwd -P && exec find . -name .git -prune -o ! -type d -print0';

/** Reads the protected files of a workspace at its base commit. */
export async function readProtected(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, patterns }: { readonly workdir: string; readonly patterns: readonly string[] },
  signal: AbortSignal,
): Promise<ProtectedFiles> {
  if (patterns.length === 0) return { workdir, names: [], tar: Buffer.alloc(0) };
  const asAgent = { account: 'agent', cwd: workdir, env: {}, ...limits } as const;
  const found = await sandbox.exec({ ...asAgent, argv: ['sh', '-c', listScript] }, signal);
  requireSuccess(found, `listing the files in ${workdir}`);
  const isProtected = matcher(patterns);
  const lineEnd = found.stdout.indexOf('\n');
  const real = found.stdout.toString('utf8', 0, lineEnd);
  const names = found.stdout
    .toString('latin1', lineEnd + 1)
    .split('\0')
    .map((name) => name.slice(2))
    .filter((name) => name !== '' && isProtected(name));
  if (names.length === 0) return { workdir: real, names, tar: Buffer.alloc(0) };
  const stdin = Buffer.from(names.map((name) => `./${name}\n`).join(''), 'latin1');
  const packed = await sandbox.exec({ ...asAgent, argv: ['tar', '-c', '-f', '-', '-T', '-'], stdin }, signal);
  requireSuccess(packed, 'reading protected files');
  return { workdir: real, names, tar: packed.stdout };
}

/** Puts the files of `tar` at the paths in `names`, in the workspace $1. */
const writeScript = `
${makeRoom}
rm -rf ${waitingRoom} && mkdir -p ${waitingRoom} && tar -x -o -f - -C ${waitingRoom} || exit
[ -x "$1" ] || chmod u+rwx "$1" 2>/dev/null
cd "$1" && make_room ${waitingRoom}/names && tar -x -p -o -f ${waitingRoom}/tar && exec rm -rf ${waitingRoom}
`;

/**
 * Puts protected files back. Returns a refusal if the agent has made that impossible, otherwise null. Throws
 * EvaluationTimedOut.
 */
export async function writeProtected(
  sandbox: Pick<Sandbox, 'exec'>,
  { files, attempt }: { readonly files: ProtectedFiles; readonly attempt: number },
  signal: AbortSignal,
): Promise<string | null> {
  const { workdir, names, tar } = files;
  if (names.length === 0) return null;
  const waiting = { names: pathsForRoom(names), tar };
  const tree = new Map(Object.entries(waiting).map(([name, bytes]) => [name, { mode: 0o644, bytes }]));
  const stdin = await packTree(tree, { uid: 0, gid: 0 });
  const argv = ['sh', '-c', writeScript, 'write', workdir] as const;
  const put = await sandbox.exec({ account: 'agent', cwd: '/', env: {}, ...limits, argv: [...argv], stdin }, signal);
  retryLate(put, attempt);
  if (put.exitCode === 0 && !put.timedOut) return null;
  return `protected files could not be restored: ${put.stderr.toString('utf8').trim().slice(-2000)}`;
}
