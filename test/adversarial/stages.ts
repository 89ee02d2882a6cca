import assert from 'node:assert/strict';
import { testsKey } from '../../infra/grading/tests/test-process.ts';
import type { Sandbox } from '../../infra/sandbox/sandbox.ts';
import { NotYetRead } from '../../infra/sandbox/what-agent-left.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { until } from '../helpers/until.ts';

/** The file for which tests wait so that they still run at a second attempt. */
export const testsMayEnd = '/tmp/tests-may-end';
/** The attempts of a stage of a rollout. */
const stageAttempts = 12;

/** One attempt at a stage. */
export interface StageTry {
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
  /** Whether a capture has failed before. */
  readonly failedBefore: boolean;
}

/** Repeats work that the sandbox did not take, as a stage of a rollout does. */
export async function asStage<T>(work: (stage: StageTry) => Promise<T>): Promise<T> {
  let failedBefore = false;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work({ attempt, failedBefore });
    } catch (error) {
      const isRetried = error instanceof TemperFailure && error.type === 'SandboxUnavailable';
      if (!isRetried || attempt === stageAttempts) throw error;
      failedBefore ||= error instanceof NotYetRead;
    }
  }
}

/** Aborts an evaluation once its tests run, as the death of its worker would. */
export async function leaveRunning(sandbox: Sandbox, judge: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const dying = new AbortController();
  const judged = judge(dying.signal);
  judged.catch(() => undefined);
  await until(async () => (await sandbox.status(testsKey)).state === 'running');
  dying.abort();
  await assert.rejects(judged);
  const touch = { argv: ['touch', testsMayEnd], cwd: '/', account: 'agent', env: {} } as const;
  const limits = { timeoutMs: 300_000, maxOutputBytes: 0 };
  const { exitCode } = await sandbox.exec({ ...touch, ...limits }, new AbortController().signal);
  assert.equal(exitCode, 0);
}
