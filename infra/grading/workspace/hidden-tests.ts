import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';
import { requireSuccess } from './require-success.ts';

/** Beside the workspace, in the sandbox of one evaluation. */
const directory = '/tmp/temper-hidden-tests';
const limits = { account: 'agent', maxOutputBytes: 64 * 1024 } as const;
const copyTimeoutMs = 60_000;

/**
 * Takes the hidden tests out of the history that an image brings, before that is stripped to what the agent may see. Only
 * for an evaluation; the workspace stays as it is, so that its base commit is the agent's.
 */
export async function gatherHiddenTests(
  sandbox: Sandbox,
  { hiddenTests, env }: Pick<GradedTask, 'hiddenTests' | 'env'>,
  { workdir, deadlineMs }: { readonly workdir: string; readonly deadlineMs: number },
  signal: AbortSignal,
): Promise<void> {
  for (const command of hiddenTests) {
    const argv = ['bash', '-c', `mkdir -p "$TEMPER_HIDDEN_TESTS" || exit 1\n${command}`] as const;
    const timeoutMs = Math.max(1, deadlineMs - Date.now());
    const withPlace = { ...env, TEMPER_HIDDEN_TESTS: directory };
    const done = await sandbox.exec({ ...limits, cwd: workdir, argv, env: withPlace, timeoutMs }, signal);
    requireSuccess(done, `the command for hidden tests ${JSON.stringify(command.slice(0, 120))}`);
  }
}

/** What a diff has put in the place of a test, or of a directory above it, goes: it is no excuse. */
const place = `
to=$PWD
cd ${directory} || exit 1
find . ! -type d | while IFS= read -r path; do
  rest=\${path#./} above=
  while [ "$rest" != "\${rest#*/}" ]; do
    above=$above\${rest%%/*} rest=\${rest#*/}
    if [ -L "$to/$above" ] || [ ! -d "$to/$above" ]; then rm -f -- "$to/$above" || exit 1; fi
    above=$above/
  done
  mkdir -p -- "$to/$above" && rm -rf -- "$to/$path" && cp -P -p -- "$path" "$to/$path" || exit 1
done || exit 1
cd / && rm -rf ${directory}
`;

/** Puts them where they belong, over the solution that they are to judge. */
export async function placeHiddenTests(
  sandbox: Sandbox,
  { hiddenTests }: Pick<GradedTask, 'hiddenTests'>,
  workdir: string,
  signal: AbortSignal,
): Promise<void> {
  if (hiddenTests.length === 0) return;
  const argv = ['bash', '-c', place] as const;
  const done = await sandbox.exec({ ...limits, cwd: workdir, argv, env: {}, timeoutMs: copyTimeoutMs }, signal);
  if (done.exitCode !== 0) {
    const got = done.stderr.toString('utf8').trim().slice(-300);
    throw new TemperFailure('SetupFailed', `expected to put the hidden tests into ${workdir}, got: ${got}`);
  }
}
