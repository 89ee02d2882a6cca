import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { inImage } from '../../sandbox/image-environment.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { wasCutOff } from '../late.ts';
import type { GradedTask } from '../task.ts';
import { cutOff, requireTaskSuccess } from './require-success.ts';

/*
 * Hidden tests that an image brings in its own history: gathered before the history is stripped, and placed over the
 * solution. Tests in `/tests` need none of this.
 */

/** The directory for gathered tests, outside the workspace, in the sandbox of one evaluation. */
const directory = '/tmp/temper-hidden-tests';
const limits = { account: 'agent', maxOutputBytes: 64 * 1024 } as const;
const placeTimeoutMs = 60_000;

/**
 * Copies the hidden tests out of the image's history, before that is stripped to what an agent may see. Only evaluations do
 * this. The workspace does not change, so it has the same base commit as the agent's.
 */
export async function gatherHiddenTests(
  sandbox: Sandbox,
  { hiddenTests, env }: Pick<GradedTask, 'hiddenTests' | 'env'>,
  { workdir, deadlineMs }: { readonly workdir: string; readonly deadlineMs: number },
  signal: AbortSignal,
): Promise<void> {
  for (const command of hiddenTests) {
    const done = await sandbox.exec(
      {
        ...limits,
        cwd: workdir,
        ...inImage(['bash', '-c', `mkdir -p "$TEMPER_HIDDEN_TESTS" || exit 1\n${command}`]),
        env: { ...env, TEMPER_HIDDEN_TESTS: directory },
        timeoutMs: Math.max(1, deadlineMs - performance.now()),
      },
      signal,
    );
    requireTaskSuccess(done, `the command for hidden tests ${JSON.stringify(command.slice(0, 120))}`);
  }
}

/** Moves the gathered tests into the working directory. Removes what a diff put in place of a test or of a directory above it. */
const placeScript = `
to=$PWD
cd ${directory} || exit 1
find . ! -type d | while IFS= read -r path; do
  # Walk down to the test's directory, and remove every link and file on the way.
  rest=\${path#./} above=
  while [ "$rest" != "\${rest#*/}" ]; do
    above=$above\${rest%%/*} rest=\${rest#*/}
    if [ -L "$to/$above" ] || [ ! -d "$to/$above" ]; then rm -f -- "$to/$above" || exit 1; fi
    above=$above/
  done
  # Replace whatever has the test's name.
  mkdir -p -- "$to/$above" && rm -rf -- "$to/$path" && cp -P -p -- "$path" "$to/$path" || exit 1
done || exit 1
cd / && rm -rf ${directory}
`;

/** Places the gathered tests into the workspace, over the solution that they judge. Throws SetupFailed or SandboxUnavailable. */
export async function placeHiddenTests(
  sandbox: Sandbox,
  { hiddenTests }: Pick<GradedTask, 'hiddenTests'>,
  workdir: string,
  signal: AbortSignal,
): Promise<void> {
  if (hiddenTests.length === 0) return;
  const argv = ['bash', '-c', placeScript] as const;
  const done = await sandbox.exec({ ...limits, cwd: workdir, argv, env: {}, timeoutMs: placeTimeoutMs }, signal);
  if (wasCutOff(done)) throw cutOff(done, `placing the hidden tests into ${workdir}`);
  if (done.exitCode !== 0) {
    const output = done.stderr.toString('utf8').trim().slice(-300);
    throw new TemperFailure('SetupFailed', `the hidden tests could not be placed into ${workdir}: ${output}`);
  }
}
