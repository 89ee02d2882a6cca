import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { retryLate, wasCutOff } from '../late.ts';

/*
 * A workdir that belongs to the tests.
 *
 * Tests that write a reward run as the grader, while the workdir is the agent's. Those that write there, too, get a copy of it
 * in its place, which takes an account that may replace the directory.
 */

const limits = { timeoutMs: 120_000, maxOutputBytes: 64 * 1024 } as const;

const question = '[ -O "$1" ] || [ -w "$(dirname "$1")" ]';

/**
 * Removes the half-made copies beside the workdir $1. Each is renamed first, so that an interrupted attempt that is still at one
 * fails.
 */
const clearing = `
for left in "$1".temper-copy.??????; do
  if [ -O "$left" ] && [ ! -L "$left" ]; then mv "$left" "$left.left"; fi
done
for left in "$1".temper-copy.??????.left; do
  if [ -O "$left" ] && [ ! -L "$left" ]; then chmod -R u+rwX "$left"; rm -rf "$left"; fi
done
`;

/**
 * Replaces the workdir $1 by a copy that keeps modes and times. The agent's own stays beside it. An interrupted attempt may still be
 * at it.
 */
const replacement = `
[ ! -O "$1" ] || exit 0
${clearing}
copy=$(mktemp -d "$1.temper-copy.XXXXXX") || exit
drop() { chmod -R u+rwX "$copy"; rm -rf "$copy"; exit "$1"; }
case $(cp --help 2>&1) in
  *--no-preserve*) cp -a --no-preserve=ownership "$1/." "$copy/" ;;
  *) cp -R -P -p "$1/." "$copy/" ;;
esac || drop 1
[ ! -O "$1" ] || drop 0
mv "$1" "$copy.agent" && { mv "$copy" "$1" || { mv "$copy.agent" "$1"; drop 1; }; } || drop 1
`;

/** Makes the files in the workdir $1 readable for all. What cannot be changed shows when the files are copied. */
const opening = 'chmod -R u+rX,go+rX "$1" 2>/dev/null; true';

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

interface WorkdirToOwn {
  readonly workdir: string;
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
}

/** Makes the workdir the grader's. Returns why that is impossible, or null. Throws EvaluationTimedOut. */
export async function ownWorkdir(
  sandbox: Sandbox,
  { workdir, attempt }: WorkdirToOwn,
  signal: AbortSignal,
): Promise<string | null> {
  const copy = () => asGrader(sandbox, replacement, workdir, signal);
  let copied = await copy();
  if (copied.exitCode !== 0 && !wasCutOff(copied)) {
    // The agent may have closed files, and nothing before now has needed those that no diff holds.
    const argv = ['sh', '-c', opening, 'sh', workdir] as const;
    const opened = await sandbox.exec({ account: 'agent', cwd: '/', argv: [...argv], env: {}, ...limits }, signal);
    retryLate(opened, attempt, `making the files in ${workdir} readable`);
    copied = await copy();
  }
  // The half-made copy takes disk space, which the next step of the task may need.
  if (wasCutOff(copied)) await asGrader(sandbox, clearing, workdir, signal);
  retryLate(copied, attempt, `copying ${workdir} for the tests`);
  if (copied.exitCode === 0) return null;
  const why = wasCutOff(copied) ? `it was killed or took longer than ${limits.timeoutMs / 1000} s` : lastOf(copied);
  return `the tests could not get a copy of ${workdir} that they may write in: ${why}`;
}

const lastOf = ({ stderr }: ExecResult): string => stderr.toString('utf8').trim().slice(-300);
