import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Client } from '@temporalio/client';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutRequest, RolloutResult } from '../../workflows/contracts/rollout.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';
import { startTestWorkers } from '../helpers/temporal/workers.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root, to mount a small disk';

it("lets a rollout wait while the store's disk is full, and loses nothing", { skip }, async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-full-'));
  const store = join(home, 'store');
  await mkdir(store);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'temper-test', store]);
  const server = await startTestServer();
  const provider = createLocalProvider({
    root: join(home, 'sandboxes'),
    stack: 'test-stack',
    spawner: createHelperSpawner(),
  });
  const workers = await startTestWorkers({ server, home, provider });
  const start = (workflowId: string, agent: string) => {
    const request: RolloutRequest = { task: 'generated:train/1/0', agent };
    return server.client.workflow.start('rollout', { taskQueue: controlQueue, workflowId, args: [request] });
  };
  try {
    // Stores the task first, so that only the agent's results meet the full disk.
    await (await start('before', 'nop')).result();
    const filler = join(store, 'filler');
    const { bavail, bsize } = await statfs(store);
    await writeFile(filler, Buffer.alloc(bavail * bsize));

    const handle = await start('full', 'oracle');
    const waiting = await untilRetried(server.client, 'full');
    assert.match(waiting, /no space left to write .*; free some/);
    await rm(filler);

    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', 1, 1], JSON.stringify(result));
    assert.deepEqual(await provider.list('test-stack'), []);
  } finally {
    await workers.close();
    await server.close();
    execFileSync('umount', [store]);
    await rm(home, { recursive: true, force: true });
  }
});

/** Returns the failure of the pending activity's last attempt. */
async function untilRetried(client: Client, workflowId: string): Promise<string> {
  for (;;) {
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    assert.equal(raw.workflowExecutionInfo?.closeTime ?? null, null, 'expected the rollout to wait, but it ended');
    const failure = raw.pendingActivities?.find(({ lastFailure }) => lastFailure)?.lastFailure;
    if (failure?.message) return failure.message;
  }
}
