import { randomUUID } from 'node:crypto';
import type { FileEntry, FileTree } from '../../sandbox/files.ts';
import { enterImage } from '../../sandbox/image-environment.ts';
import { cutMiddle, readWholeLog, type WholeLog } from '../../sandbox/process-log.ts';
import { logBytes, type PutFiles, type Sandbox } from '../../sandbox/sandbox.ts';
import { exposureOf } from '../exposure.ts';
import { marksIn } from '../flags/test-run.ts';
import { nextCommand } from '../resolution/eval-section.ts';
import { judgeInThread } from '../resolution/judge-in-thread.ts';
import { unreadable } from '../resolution/judge-log.ts';
import type { GradedTask, LogGrading } from '../task.ts';
import { serveAgentCommands } from './agent-commands.ts';
import { endTests, requireEnd, type TestEnd, testsKey } from './test-process.ts';
import type { TestRun, TestsToRun } from './test-run.ts';

/** The tests' directory where they run as the agent, whose account must be able to read it. */
const directory = '/test-files';

/** Returns the files that the sandbox of an evaluation is to be made with for such tests: their directory, without the tests. */
export const testDirectory = ({
  grading,
  codeAsAgent,
}: Pick<GradedTask, 'grading' | 'codeAsAgent'>): readonly PutFiles[] =>
  grading === null || codeAsAgent ? [] : [{ tree: new Map(), at: directory, owner: 'agent' }];

/**
 * The shell that runs a task's `prepare.sh` and `test.sh`, and prints the marks around the tests' output.
 *
 * It reads everything into its memory before any code of the policy runs: the nonce of the marks and both scripts, with programs
 * that no agent can replace. Only then does it enter the image's environment. Nothing
 * of it is in an environment or an argument. The tests run in a subshell, so whatever they do to their shell, the end mark
 * is printed with their exit status. A test.sh of several commands gets a mark in place of each `nextCommand`.
 */
const runScript = `
# Read the nonce, and delete its file; read the tests' script.
temper_nonce=$(cat "$TEMPER_TESTS/nonce") && rm -f "$TEMPER_TESTS/nonce" || exit 125
temper_tests=$(cat "$TEMPER_TESTS/test.sh") || exit 125

# Print a mark between the commands of the tests.
temper_between="${nextCommand}"
temper_next="printf '\\n%s\\n' '>>>>> Next Test Output $temper_nonce'"
temper_tests=\${temper_tests//"$temper_between"/"$temper_next"}
unset temper_between temper_next

# Enter the image's environment, whose PATH may lead to programs of the agent.
temper_prepare=
if [ -f "$TEMPER_TESTS/prepare.sh" ]; then temper_prepare=$(cat "$TEMPER_TESTS/prepare.sh"); fi
${enterImage}

# Prepare in this shell: what it exports and enables holds for the tests, too.
eval "$temper_prepare"

# Keep the options -e and -u for the tests alone: this shell has to reach its end mark.
{ temper_flags=\${-//[!eu]/}; set +eux; } 2>/dev/null
printf '\\n>>>>> Start Test Output %s\\n' "$temper_nonce"
(
  unset temper_nonce temper_prepare
  if [ -n "$temper_flags" ]; then set "-$temper_flags"; fi
  eval "$temper_tests"
)
temper_status=$?
printf '\\n>>>>> End Test Output %s %s\\n' "$temper_nonce" "$temper_status"
exit "$temper_status"
`;

/**
 * Runs tests that write no reward, and judges them by their log, outside the sandbox. They run as the account that owns the
 * workspace, unless they run the code as programs of that account. An implausible log is refused, which is data; throws if
 * the sandbox cannot say how the tests ended.
 */
export async function runLoggedTests(
  sandbox: Sandbox,
  { task, workdir, timeoutMs, diskBeforeMb, env, network, codeEnv }: TestsToRun,
  grading: LogGrading,
  signal: AbortSignal,
): Promise<TestRun> {
  const nonce = randomUUID();
  const tree: FileTree = new Map<string, FileEntry>([
    ...task.tests,
    ['nonce', { mode: 0o600, bytes: Buffer.from(nonce) }],
  ]);
  const { account, at, cwd } = task.codeAsAgent
    ? ({ account: 'grader', at: '/tests', cwd: '/tests' } as const)
    : ({ account: 'agent', at: directory, cwd: workdir } as const);
  if (task.codeAsAgent) await serveAgentCommands(sandbox, { workdir, env: codeEnv }, signal);
  const argv = network.through(['bash', '-c', runScript, 'test.sh']);
  const files = [{ tree, at, owner: account }];
  await sandbox.start(
    { key: testsKey, account, cwd, argv, entersImage: true, env: { ...env, ...network.env, TEMPER_TESTS: at }, files },
    signal,
  );
  const status = requireEnd(await sandbox.wait(testsKey, { timeoutMs, diskBeforeMb }, signal));
  // A daemon of the code under test must not write into the log while it is read.
  await endTests(sandbox, account, status);
  const log = await readWholeLog(sandbox, testsKey);
  const exposure = task.codeAsAgent && sandbox.twoUids ? 'other-account' : exposureOf(grading.logParser);
  return {
    ...(await judge(log, status, { ...grading, nonce })),
    nonce,
    ownMarks: marksIn(task.tests),
    ...(exposure !== null && { exposure }),
    log: cutMiddle(log.bytes),
  };
}

async function judge(
  { bytes, truncated }: WholeLog,
  status: TestEnd,
  by: LogGrading & { readonly nonce: string },
): Promise<Omit<TestRun, 'log'>> {
  const unjudged = { value: null, exitCode: null } as const;
  if (status.state === 'running') {
    return { ...unjudged, kind: 'timeout', judgement: unreadable(by, 'the tests ran out of time') };
  }
  const { exitCode, limit } = status;
  const judgement = truncated
    ? unreadable(by, `the tests printed more than ${logBytes / 2 ** 20} MB`)
    : await judgeInThread(bytes, { ...by, exitCode });
  const { resolution } = judgement;
  if (resolution.status !== 'refused') return { ...unjudged, exitCode, limit, kind: 'graded', judgement };
  const hit = limit === undefined ? '' : `; the tests ran into their limit of ${limit}`;
  const explained = { ...judgement, resolution: { ...resolution, reason: `${resolution.reason}${hit}` } };
  return { ...unjudged, exitCode, limit, kind: 'refused', judgement: explained };
}
