import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { inImage } from '../../sandbox/image-environment.ts';
import { readLog } from '../../sandbox/process-log.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { serveAgentCommands } from './agent-commands.ts';
import { ownWorkdir } from './own-workdir.ts';
import { readReward } from './reward.ts';
import { endTests, requireEnd, testsKey } from './test-process.ts';
import type { TestRun, TestsToRun } from './test-run.ts';

const directory = '/tests';

/** Runs tests that write a reward, as the grader: the only account that may write there. */
export async function runRewardedTests(
  sandbox: Sandbox,
  { task, workdir, timeoutMs, attempt, diskBeforeMb, env, network, codeEnv }: TestsToRun,
  signal: AbortSignal,
): Promise<TestRun> {
  if (task.codeAsAgent) await serveAgentCommands(sandbox, { workdir, env: codeEnv }, signal);
  const notCopied = task.ownWorkdir ? await ownWorkdir(sandbox, { workdir, attempt }, signal) : null;
  if (notCopied !== null) {
    return { kind: 'patch-failed', value: null, exitCode: null, log: Buffer.from(`${notCopied}\n`), notCopied };
  }
  const command = inImage(['bash', `${directory}/test.sh`]);
  const started = await sandbox.start(
    {
      key: testsKey,
      account: 'grader',
      cwd: task.codeAsAgent ? directory : workdir,
      ...command,
      argv: network.through(command.argv),
      env: { ...env, ...network.env },
      files: [{ tree: task.tests, at: directory, owner: 'grader' }],
    },
    signal,
  );
  // Tests that an earlier activity attempt started have used a part of their time.
  const usedMs = started === 'already-started' ? await sandbox.ageMs(testsKey, signal) : 0;
  const status = requireEnd(await sandbox.wait(testsKey, { timeoutMs: timeoutMs - usedMs, diskBeforeMb }, signal));
  // A daemon of the code under test must not write a reward while it is read.
  await endTests(sandbox, 'grader', status);
  const log = await readLog(sandbox, testsKey);
  const exposure = task.codeAsAgent && sandbox.twoUids ? 'other-account' : 'same-account';
  if (status.state === 'running') return { kind: 'timeout', value: null, exitCode: null, log, exposure };
  const ended = { exitCode: status.exitCode, limit: status.limit, log, exposure } as const;
  try {
    const reward = await readReward(sandbox, task, signal);
    return reward === null ? { kind: 'no-reward', value: null, ...ended } : { kind: 'graded', ...reward, ...ended };
  } catch (error) {
    if (!(error instanceof TemperFailure) || error.type !== 'InvalidReward') throw error;
    return { kind: 'no-reward', value: null, ...ended, invalidReward: error.message };
  }
}
