import { randomUUID } from 'node:crypto';
import type { FileEntry, FileTree } from '../sandbox/files.ts';
import { logBytes, type Sandbox } from '../sandbox/sandbox.ts';
import { offerAsAgent } from './as-agent.ts';
import { exposureOf } from './exposure.ts';
import { marksIn } from './flags/of-run.ts';
import { nextCommand } from './resolution/eval-section.ts';
import { judgeAside } from './resolution/judge-aside.ts';
import { unread } from './resolution/judge-log.ts';
import type { TestRun, TestsToRun } from './run-tests.ts';
import type { LogGrading } from './task.ts';
import { endTests, requireEnd, type TestEnd } from './test-end.ts';
import { cutInTheMiddle, readWholeLog, type WholeLog } from './whole-log.ts';

const testsKey = 'tests';
/** Where the account of the agent, which owns the workspace, can read and run them. */
const directory = '/test-files';

/**
 * Prepares and runs the tests, each by the script of the task. All that it needs is in its memory before anything of the
 * policy's runs, and nothing of it in an environment or an argument: the nonce of the marks, and both scripts. The tests
 * run in a shell below it, so that whatever they do to theirs, the end mark comes with the status that they ended with. Where
 * they are several commands, that shell prints a mark between them.
 */
const runScript = `
temper_nonce=$(cat "$TEMPER_TESTS/nonce") && rm -f "$TEMPER_TESTS/nonce" || exit 125
temper_tests=$(cat "$TEMPER_TESTS/test.sh") || exit 125
temper_between="${nextCommand}"
temper_next="printf '\\n%s\\n' '>>>>> Next Test Output $temper_nonce'"
temper_tests=\${temper_tests//"$temper_between"/"$temper_next"}
unset temper_between temper_next
temper_prepare=
if [ -f "$TEMPER_TESTS/prepare.sh" ]; then temper_prepare=$(cat "$TEMPER_TESTS/prepare.sh"); fi
eval "$temper_prepare"
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
 * Runs tests that write no reward, and judges them by their log, outside of the sandbox. They run as the account that owns
 * the workspace, unless they run the code as programs of that. What can't be believed is refused, which is data; a sandbox that can't say how they ended throws.
 */
export async function runLoggedTests(
  sandbox: Sandbox,
  { task, workdir, timeoutMs, diskBeforeMb, env, codeEnv }: TestsToRun,
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
  await sandbox.putFiles({ tree, at, owner: account }, signal);
  if (task.codeAsAgent) await offerAsAgent(sandbox, { workdir, env: codeEnv }, signal);
  const argv = ['bash', '-c', runScript, 'test.sh'] as const;
  await sandbox.start({ key: testsKey, account, cwd, argv, env: { ...env, TEMPER_TESTS: at } }, signal);
  const status = requireEnd(await sandbox.wait(testsKey, { timeoutMs, diskBeforeMb }, signal));
  // A daemon of the code under test must not write into the log while that is read.
  await endTests(sandbox, testsKey, account, status);
  const log = await readWholeLog(sandbox, testsKey);
  const exposure = task.codeAsAgent && sandbox.twoUids ? 'other-account' : exposureOf(grading.logParser);
  const seen = { nonce, ownMarks: marksIn(task.tests), ...(exposure !== null && { exposure }) };
  return { ...(await judge(log, status, { ...grading, nonce })), ...seen, log: cutInTheMiddle(log.bytes) };
}

async function judge(
  { bytes, truncated }: WholeLog,
  status: TestEnd,
  by: LogGrading & { readonly nonce: string },
): Promise<Omit<TestRun, 'log'>> {
  const none = { value: null, exitCode: null } as const;
  if (status.state === 'running')
    return { ...none, kind: 'timeout', judgement: unread(by, 'the tests ran out of time') };
  const { exitCode, limit } = status;
  const judgement = truncated
    ? unread(by, `the tests printed more than ${logBytes / 2 ** 20} MB`)
    : await judgeAside(bytes, { ...by, exitCode });
  const { resolution } = judgement;
  if (resolution.status !== 'refused') return { ...none, exitCode, limit, kind: 'graded', judgement };
  const hit = limit === undefined ? '' : `; the tests ran into their limit of ${limit}`;
  const explained = { ...judgement, resolution: { ...resolution, reason: `${resolution.reason}${hit}` } };
  return { ...none, exitCode, limit, kind: 'refused', judgement: explained };
}
