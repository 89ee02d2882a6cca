import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutRequest } from '../../workflows/contracts/rollout.ts';
import { trainAllBranches } from '../../workflows/contracts/trace.ts';
import { startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';

it('opens the trace of a rollout with the branch rule of the input, else of the agent', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-branches-'));
  const server = await startTestServer();
  const declared = { train: 'final', maxSegments: 4, maxSegmentTokens: null } as const;
  const workers = await startScriptedWorkers(server, home, { reward: () => 1, branches: declared });
  try {
    const run = (workflowId: string, request: Partial<RolloutRequest>): Promise<unknown> => {
      const args = [{ task: 'scripted:0', ...request }];
      return server.client.workflow.execute('rollout', { taskQueue: controlQueue, workflowId, args });
    };
    await run('agents', {});
    await run('inputs', { branches: { maxSegmentTokens: 100 } });
    assert.deepEqual(
      workers.opened.map(({ branches }) => branches),
      [declared, { ...trainAllBranches, maxSegmentTokens: 100 }],
    );
    const bad = run('bad', { branches: { train: 'some' } } as never);
    await assert.rejects(bad, (error: Error) => /branches\.train: expected/.test(String(error.cause)));
  } finally {
    await workers.close();
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
});
