import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { isFileRefused } from '../sandbox/failure.ts';
import type { ProcessStatus, Sandbox } from '../sandbox/sandbox.ts';
import type { Store } from '../store/store.ts';
import type { HarborTask } from '../tasks/harbor.ts';
import { parseReward } from './reward-file.ts';
import { countTests } from './test-log.ts';

const testsKey = 'tests';
/** What is kept of a log: its head and its tail, where reasons and summaries are. */
const logHeadBytes = 256 * 1024;
const logTailBytes = 256 * 1024;
const rewardBytes = 64 * 1024;

export interface TestRun {
  readonly kind: Verdict['kind'];
  readonly value: number | null;
  readonly exitCode: number | null;
  readonly log: Buffer;
}

/**
 * Runs the hidden tests in a sandbox whose workspace holds the patch. They are copied in only now. A timeout, and an end
 * without a reward, is data; a reward that is none throws InvalidReward.
 */
export async function runTests(
  sandbox: Sandbox,
  task: HarborTask,
  options: { readonly workdir: string; readonly timeoutMs: number; readonly path: string | null },
  signal: AbortSignal,
): Promise<TestRun> {
  await sandbox.putFiles({ tree: task.tests, at: '/tests', owner: 'grader' }, signal);
  const env = { ...task.env, ...task.testEnv, ...(options.path !== null && { PATH: options.path }) };
  await sandbox.start(
    { key: testsKey, account: 'grader', cwd: options.workdir, argv: ['bash', '/tests/test.sh'], env },
    signal,
  );
  const status = await sandbox.wait(testsKey, { timeoutMs: options.timeoutMs }, signal);
  await sandbox.kill(testsKey);
  const log = await readLog(sandbox, testsKey);
  if (status.state === 'running') return { kind: 'timeout', value: null, exitCode: null, log };
  const value = await readReward(sandbox, signal);
  return { kind: value === null ? 'no-reward' : 'graded', value, exitCode: exitCodeOf(status), log };
}

const exitCodeOf = (status: ProcessStatus): number | null => (status.state === 'exited' ? status.exitCode : null);

async function readReward(sandbox: Sandbox, signal: AbortSignal): Promise<number | null> {
  for (const file of ['reward.txt', 'reward.json'] as const) {
    try {
      const content = await sandbox.readFile(`/logs/verifier/${file}`, rewardBytes, signal);
      return parseReward(file, content.toString('utf8'));
    } catch (error) {
      if (!isFileRefused(error, 'missing')) throw error;
    }
  }
  return null;
}

/** A detached process's log, cut in the middle when it is long. */
export async function readLog(sandbox: Sandbox, key: string): Promise<Buffer> {
  const head = await sandbox.readLog(key, { fromByte: 0, maxBytes: logHeadBytes });
  if (head.bytes.length < logHeadBytes) return head.bytes;
  let tail = Buffer.alloc(0);
  let from = head.nextByte;
  let skipped = 0;
  for (;;) {
    const part = await sandbox.readLog(key, { fromByte: from, maxBytes: 4 * logTailBytes });
    if (part.bytes.length === 0) break;
    from = part.nextByte;
    const joined = Buffer.concat([tail, part.bytes]);
    tail = joined.subarray(Math.max(0, joined.length - logTailBytes));
    skipped += joined.length - tail.length;
  }
  return Buffer.concat([head.bytes, Buffer.from(`\n… ${skipped} bytes left out …\n`), tail]);
}

/** The verdict of a test run, with its log in the store. */
export async function toVerdict(store: Store, run: TestRun, subject: string): Promise<Verdict> {
  const log = await store.put(run.log, 'text/plain');
  const { kind, value, exitCode } = run;
  return { kind, value, exitCode, ...countTests(run.log.toString('utf8')), log, subject };
}
