import { weightedReward } from '../../workflows/algorithms/weighted-reward.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Flag } from '../../workflows/contracts/flags.ts';
import type { Exposure, Verdict } from '../../workflows/contracts/verdict.ts';
import { FileRefused } from '../sandbox/failure.ts';
import type { LimitHit, Sandbox } from '../sandbox/sandbox.ts';
import type { Store } from '../store/store.ts';
import { offerAsAgent } from './as-agent.ts';
import { parseNamedScores } from './named-scores.ts';
import type { Judgement } from './resolution/judge-log.ts';
import { parseReward } from './reward-file.ts';
import { runLoggedTests } from './run-logged-tests.ts';
import type { GradedTask } from './task.ts';
import { endTests, requireEnd } from './test-end.ts';
import { countTests } from './test-log.ts';
import { graderVersion } from './version.ts';
import { cutInTheMiddle, readWholeLog } from './whole-log.ts';

const testsKey = 'tests';
const rewardBytes = 64 * 1024;

export interface TestsToRun {
  readonly task: GradedTask;
  readonly workdir: string;
  readonly timeoutMs: number;
  /** MB that the tests did not make. */
  readonly diskBeforeMb: number;
  readonly env: Readonly<Record<string, string>>;
  /** Of the code, where it runs by itself. */
  readonly codeEnv: Readonly<Record<string, string>>;
}

export interface TestRun {
  readonly kind: Verdict['kind'];
  readonly value: number | null;
  readonly exitCode: number | null;
  readonly log: Buffer;
  /** Of tests that are judged by their log. */
  readonly judgement?: Judgement;
  /** Of the marks in that log. */
  readonly nonce?: string;
  /** Marks that the task's own scripts hold. */
  readonly ownMarks?: readonly string[];
  /** The limit that the tests ran into. */
  readonly limit?: LimitHit | undefined;
  /** Absent where none ran. */
  readonly exposure?: Exposure;
  /** What the tests wrote as their reward, where that is none. */
  readonly invalidReward?: string;
}

/**
 * Runs the hidden tests in a sandbox whose workspace holds the patch. They are copied in only now. A timeout, an end
 * without a reward, a reward that is none, and a log that can't be believed are data.
 */
export async function runTests(
  sandbox: Sandbox,
  task: GradedTask,
  options: Omit<TestsToRun, 'task' | 'env' | 'codeEnv'> & { readonly path: string | null },
  signal: AbortSignal,
): Promise<TestRun> {
  const { path, ...where } = options;
  const pathEnv = path === null ? {} : { PATH: path };
  const codeEnv = { ...task.env, ...pathEnv };
  const tests = { ...where, task, env: { ...task.env, ...task.testEnv, ...pathEnv }, codeEnv };
  return task.grading === null
    ? runRewardedTests(sandbox, tests, signal)
    : runLoggedTests(sandbox, tests, task.grading, signal);
}

/** Tests that write their reward, as the account that alone may write there. */
async function runRewardedTests(
  sandbox: Sandbox,
  { task, workdir, timeoutMs, diskBeforeMb, env, codeEnv }: TestsToRun,
  signal: AbortSignal,
): Promise<TestRun> {
  const tests = '/tests';
  await sandbox.putFiles({ tree: task.tests, at: tests, owner: 'grader' }, signal);
  if (task.codeAsAgent) await offerAsAgent(sandbox, { workdir, env: codeEnv }, signal);
  const command = { account: 'grader', argv: ['bash', `${tests}/test.sh`], env } as const;
  await sandbox.start({ key: testsKey, ...command, cwd: task.codeAsAgent ? tests : workdir }, signal);
  const status = requireEnd(await sandbox.wait(testsKey, { timeoutMs, diskBeforeMb }, signal));
  // A daemon of the code under test must not write a reward while that is read.
  await endTests(sandbox, testsKey, 'grader', status);
  const log = await readLog(sandbox, testsKey);
  const exposure = task.codeAsAgent && sandbox.twoUids ? 'other-account' : 'same-account';
  if (status.state === 'running') return { kind: 'timeout', value: null, exitCode: null, log, exposure };
  const ended = { exitCode: status.exitCode, limit: status.limit, log, exposure } as const;
  try {
    const value = await readReward(sandbox, task.rewardWeights, signal);
    return { kind: value === null ? 'no-reward' : 'graded', value, ...ended };
  } catch (error) {
    if (!(error instanceof TemperFailure) || error.type !== 'InvalidReward') throw error;
    return { kind: 'no-reward', value: null, ...ended, invalidReward: error.message };
  }
}

/** Null: there is none. Throws InvalidReward for what is no reward. */
async function readReward(
  sandbox: Sandbox,
  weights: GradedTask['rewardWeights'],
  signal: AbortSignal,
): Promise<number | null> {
  for (const file of ['reward.txt', 'reward.json'] as const) {
    if (weights !== null && file === 'reward.txt') continue;
    try {
      const content = (await sandbox.readFile(`/logs/verifier/${file}`, rewardBytes, signal)).toString('utf8');
      return weights === null ? parseReward(file, content) : weightedReward(parseNamedScores(content), weights);
    } catch (error) {
      if (!(error instanceof FileRefused)) throw error;
      // A directory, a pipe, a link: only the code under test can have put that there, and it is no reward.
      if (error.reason !== 'missing') return null;
    }
  }
  return null;
}

/** A detached process's log, cut in the middle when it is long. */
export async function readLog(sandbox: Sandbox, key: string): Promise<Buffer> {
  return cutInTheMiddle((await readWholeLog(sandbox, key)).bytes);
}

/** The verdict of a test run, with its log and what became of each test in the store. */
export async function toVerdict(
  store: Store,
  run: TestRun,
  { subject, flags }: { readonly subject: string; readonly flags: readonly Flag[] },
): Promise<Verdict> {
  const log = await store.put(run.log, 'text/plain');
  const { kind, value, exitCode, judgement, exposure } = run;
  const beside = { ...(exposure !== undefined && { exposure }), ...(flags.length > 0 && { flags }) };
  if (judgement === undefined) {
    const counts = countTests(run.log.toString('utf8'));
    return { kind, value, exitCode, ...counts, log, subject, grader: graderVersion, ...beside };
  }
  const { resolution, passed, failed, results } = judgement;
  const tests = results === null ? null : await store.put(Buffer.from(results), 'application/json');
  const counts = { passed, failed };
  const said = { kind, value, exitCode, ...counts, log, subject, grader: graderVersion, resolution };
  return { ...said, ...(tests !== null && { tests }), ...beside };
}
