import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { controlQueue } from '../../workflows/contracts/ids.ts';
import type { RolloutRequest, RolloutResult } from '../../workflows/contracts/rollout.ts';
import { startTestServer, type TestServer } from '../helpers/temporal.ts';
import { startTestWorkers, type TestWorkers } from '../helpers/workers.ts';

describe('rollout', () => {
  let home: string;
  let server: TestServer;
  let workers: TestWorkers;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-rollout-'));
    server = await startTestServer();
    const provider = createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack' });
    workers = await startTestWorkers({ server, home, provider });
  });
  after(async () => {
    await workers?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  const run = (workflowId: string, request: RolloutRequest): Promise<RolloutResult> =>
    server.client.workflow.execute('rollout', { taskQueue: controlQueue, workflowId, args: [request] });

  it('scores 1 for the reference solution and 0 for doing nothing', async () => {
    const task = 'generated:train/1/0';
    const [oracle, nop] = await Promise.all([
      run('oracle', { task, agent: 'oracle' }),
      run('nop', { task, agent: 'nop' }),
    ]);
    assert.deepEqual([oracle.outcome, oracle.reward], ['scored', 1], JSON.stringify(oracle));
    assert.deepEqual([nop.outcome, nop.reward], ['scored', 0], JSON.stringify(nop));
    assert.ok(JSON.stringify(oracle).length < 8192);
    assert.deepEqual(await workers.host.providers.get('local')?.list('test-stack'), []);
  });

  it('refuses a bad input at once, naming field, expected and got', async () => {
    const bad = run('bad', { task: 'generated:train/1/0', maxTurns: 'many' } as never);
    await assert.rejects(bad, (error) => {
      assert.ok(error instanceof WorkflowFailedError);
      assert.match(String(error.cause), /maxTurns: expected a whole number from 1 to 100000 turns, got "many"/);
      return true;
    });
  });

  it('ends as invalid-task for an unknown task', async () => {
    const result = await run('unknown', { task: 'harbor:/nowhere/task', agent: 'nop' });
    assert.equal(result.outcome, 'invalid-task');
    assert.equal(result.failure?.type, 'UnknownTask');
  });
});
