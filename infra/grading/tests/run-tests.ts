import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';
import { runLoggedTests } from './run-logged-tests.ts';
import { runRewardedTests } from './run-rewarded-tests.ts';
import type { TestRun, TestsToRun } from './test-run.ts';

export interface TestOptions extends Omit<TestsToRun, 'task' | 'env' | 'codeEnv'> {
  /** PATH of the tests; null keeps the sandbox's own. */
  readonly path: string | null;
}

/**
 * Runs the hidden tests in a sandbox whose workspace holds the patch. They are copied in only now. A timeout, a missing or
 * invalid reward and an implausible log are data, not failures.
 */
export async function runTests(
  sandbox: Sandbox,
  task: GradedTask,
  { path, ...options }: TestOptions,
  signal: AbortSignal,
): Promise<TestRun> {
  const pathEnv = path === null ? {} : { PATH: path };
  const codeEnv = { ...task.env, ...pathEnv };
  const tests = { ...options, task, env: { ...task.env, ...task.testEnv, ...pathEnv }, codeEnv };
  return task.grading === null
    ? runRewardedTests(sandbox, tests, signal)
    : runLoggedTests(sandbox, tests, task.grading, signal);
}
