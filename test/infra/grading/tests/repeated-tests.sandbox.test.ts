import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { runTests } from '../../../../infra/grading/judge-diff.ts';
import { testsKey } from '../../../../infra/grading/tests/test-process.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { sandboxMaker, treeOf, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';
import { until } from '../../../helpers/until.ts';

/** Tests that hang after they have written the full reward. */
const task = {
  ...workspaceTask(new Map()),
  tests: treeOf({ 'test.sh': 'echo 1 >/logs/verifier/reward.txt\nsleep 600\n' }),
};
const limits = { workdir: '/workspace', attempt: 1, diskBeforeMb: 0, path: null } as const;

it('judges tests that hung alike when their end is repeated, and gives them their time once', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-repeated-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'repeated' }), 'repeated', 'none');
    const sandbox = await maker.make();
    const run = (timeoutMs: number, signal = AbortSignal.timeout(120_000)) =>
      runTests(sandbox, task, { ...limits, timeoutMs }, signal);

    // The worker that started the tests dies while they run.
    const dying = new AbortController();
    const first = run(60_000, dying.signal);
    first.catch(() => undefined);
    await until(async () => (await sandbox.status(testsKey)).state === 'running');
    const startedAtMs = Date.now();
    dying.abort();
    await assert.rejects(first);

    // The second attempt finds that their time is over.
    const timeoutMs = 15_000;
    await until(() => Date.now() - startedAtMs > timeoutMs);
    const repeatedAtMs = Date.now();
    assert.equal((await run(timeoutMs)).kind, 'timeout');
    assert.ok(Date.now() - repeatedAtMs < timeoutMs, `waited ${Date.now() - repeatedAtMs} ms more`);

    // The third one finds tests that the second one has ended.
    const { kind, value } = await run(timeoutMs);
    assert.deepEqual([kind, value], ['timeout', null]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
