import type { Sandbox } from '../../sandbox/sandbox.ts';
import { retryLate } from '../late.ts';
import { matcher } from '../protection/patterns.ts';
import { requireSuccess } from '../workspace/require-success.ts';

/*
 * The protected files of a workspace as the task has them, on their way over what an agent made of them.
 */

const limits = { timeoutMs: 120_000, maxOutputBytes: 128 * 2 ** 20 } as const;

/** Reads the protected files of a workspace at its base commit, as a tar; null if there are none. */
export async function readProtected(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, patterns }: { readonly workdir: string; readonly patterns: readonly string[] },
  signal: AbortSignal,
): Promise<Buffer | null> {
  if (patterns.length === 0) return null;
  const asAgent = { account: 'agent', cwd: workdir, env: {}, ...limits } as const;
  const list = ['find', '.', '-name', '.git', '-prune', '-o', '!', '-type', 'd', '-print0'] as const;
  const found = await sandbox.exec({ ...asAgent, argv: [...list] }, signal);
  requireSuccess(found, `listing the files in ${workdir}`);
  const isProtected = matcher(patterns);
  const names = found.stdout
    .toString('latin1')
    .split('\0')
    .map((name) => name.slice(2))
    .filter((name) => name !== '' && isProtected(name));
  if (names.length === 0) return null;
  const stdin = Buffer.from(names.map((name) => `./${name}\n`).join(''), 'latin1');
  const packed = await sandbox.exec({ ...asAgent, argv: ['tar', '-c', '-f', '-', '-T', '-'], stdin }, signal);
  requireSuccess(packed, 'reading protected files');
  return packed.stdout;
}

/**
 * Puts protected files back. Returns a refusal if the agent has made that impossible, otherwise null. Throws
 * EvaluationTimedOut.
 */
export async function writeProtected(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, files, attempt }: { readonly workdir: string; readonly files: Buffer | null; readonly attempt: number },
  signal: AbortSignal,
): Promise<string | null> {
  if (files === null) return null;
  // The agent may have closed its own directories, even to itself.
  const script = 'chmod -R u+rwX . 2>/dev/null; exec tar -x -p -o -f -';
  const argv = ['sh', '-c', script] as const;
  const put = await sandbox.exec(
    { account: 'agent', cwd: workdir, env: {}, ...limits, argv: [...argv], stdin: files },
    signal,
  );
  retryLate(put, attempt);
  if (put.exitCode === 0 && !put.timedOut) return null;
  return `protected files could not be restored: ${put.stderr.toString('utf8').trim().slice(-2000)}`;
}
