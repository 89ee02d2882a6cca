import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { outOfTime } from '../workspace/require-success.ts';

/*
 * A workdir that belongs to the tests.
 *
 * Tests that write a reward run as the grader, while the workdir is the agent's. Those that write there, too, get a copy of it
 * in its place, which takes an account that may replace the directory.
 */

const limits = { timeoutMs: 120_000, maxOutputBytes: 64 * 1024 } as const;

const question = '[ -O "$1" ] || [ -w "$(dirname "$1")" ]';

/** Replaces the workdir $1 by a copy that keeps modes and times. The agent's own stays beside it. */
const replacement = `
[ ! -O "$1" ] || exit 0
copy=$(mktemp -d "$1.XXXXXX") || exit
{ cp -a --no-preserve=ownership "$1/." "$copy/" 2>/dev/null || cp -R -P -p "$1/." "$copy/"; } &&
  mv "$1" "$copy.agent" && mv "$copy" "$1"
`;

const asGrader = (sandbox: Sandbox, text: string, workdir: string, signal: AbortSignal): Promise<ExecResult> =>
  sandbox.exec(
    { account: 'grader', cwd: '/', argv: ['bash', '-c', text, 'own-workdir', workdir], env: {}, ...limits },
    signal,
  );

/** Throws UnsupportedTask if the tests of this sandbox's task could not get a workdir of their own. Call it before the agent starts. */
export async function requireOwnWorkdir(
  sandbox: Sandbox,
  { id, workdir }: { readonly id: string; readonly workdir: string },
  signal: AbortSignal,
): Promise<void> {
  const { exitCode } = await asGrader(sandbox, question, workdir, signal);
  if (exitCode === 0) return;
  throw new TemperFailure(
    'UnsupportedTask',
    sandbox.kind === 'local'
      ? `the tests of task ${id} write in its workdir ${workdir}, which belongs to the agent's account and cannot be replaced in a local sandbox of root; use a host with Docker`
      : `the tests of task ${id} write in its workdir ${workdir}, which belongs to the agent's account; they would get a copy in its place, but only root may write in the directory above it; make that directory root's in the image`,
  );
}

/** Makes the workdir the grader's. Throws SetupFailed or SandboxUnavailable. */
export async function ownWorkdir(sandbox: Sandbox, workdir: string, signal: AbortSignal): Promise<void> {
  const { exitCode, timedOut, stderr } = await asGrader(sandbox, replacement, workdir, signal);
  if (timedOut) throw outOfTime(`a copy of ${workdir} for the tests`);
  if (exitCode === 0) return;
  const output = stderr.toString('utf8').trim().slice(-300);
  throw new TemperFailure(
    'SetupFailed',
    `the tests could not get a copy of ${workdir} that they may write in: ${output}; make its files readable for all in the image`,
  );
}
