import assert from 'node:assert/strict';
import { it } from 'node:test';
import { endTests, requireEnd } from '../../../../infra/grading/tests/test-process.ts';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { Account, Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { sandboxMaker } from '../../../helpers/sandbox/workspaces.ts';
import { until } from '../../../helpers/until.ts';

/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const daemon = "setsid env -i /bin/sh -c 'while :; do /bin/sleep 0.05; done # straggler' >/dev/null 2>&1 </dev/null &";
/** Counts the processes of the daemon. */
const look = 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -o "# [s]traggler" | wc -l';

async function stragglers(sandbox: Sandbox): Promise<number> {
  const limits = { timeoutMs: 60_000, maxOutputBytes: 1024 };
  const argv = ['sh', '-c', look] as const;
  const { stdout } = await sandbox.exec({ account: 'grader', cwd: '/', argv, env: {}, ...limits }, limit());
  return Number(String(stdout));
}

it('ends every process that tests left behind, whether they exited or ran out of time', async () => {
  const stack = `end-tests-${process.pid}`;
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  for (const account of ['grader', 'agent'] satisfies Account[]) {
    for (const [state, command] of [
      ['exited', 'exit 0'],
      ['running', 'echo said; sleep 600'],
    ] as const) {
      const sandbox = await maker.make();
      const argv = ['bash', '-c', `${daemon} ${command}`] as const;
      await sandbox.start({ key: 'tests', account, cwd: '/', argv, env: {} }, limit());
      const end = requireEnd(await sandbox.wait('tests', { timeoutMs: state === 'running' ? 1_000 : 60_000 }, limit()));
      assert.equal(end.state, state);
      await until(async () => (await stragglers(sandbox)) > 0);
      await endTests(sandbox, account, end);
      assert.equal(await stragglers(sandbox), 0, `${account}, ${state}`);
      const after = await sandbox.status('tests');
      assert.equal(after.state, 'exited');
      assert.equal(requireEnd(after).state, state, 'as another activity attempt finds it');
    }
  }
});
