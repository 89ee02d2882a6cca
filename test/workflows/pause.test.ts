import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { controlQueue } from '../../workflows/contracts/ids.ts';
import {
  pauseSignal,
  type RolloutStatus,
  resumeSignal,
  rolloutStatusQuery,
  stopSignal,
} from '../../workflows/contracts/messages.ts';
import { startTestServer, type TestServer } from '../helpers/temporal.ts';
import { startTestWorkers, type TestWorkers } from '../helpers/workers.ts';

const POLL_MS = 50;
const request = { task: 'generated:train/1/0', agent: 'oracle' };

describe('a paused rollout', () => {
  let home: string;
  let server: TestServer;
  let workers: TestWorkers;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-pause-'));
    server = await startTestServer();
    const provider = createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack' });
    workers = await startTestWorkers({ server, home, provider });
  });
  after(async () => {
    await workers?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  /** Paused before its first stage: the signal comes with the start. */
  async function startPaused(workflowId: string) {
    const options = { taskQueue: controlQueue, workflowId, args: [request] };
    const signal = { signal: pauseSignal, signalArgs: ['lunch'] as [string] };
    const handle = await server.client.workflow.signalWithStart('rollout', { ...options, ...signal });
    const paused: RolloutStatus = await handle.query(rolloutStatusQuery);
    assert.deepEqual([paused.stage, paused.paused, paused.host], ['resolveTask', true, null]);
    return handle;
  }

  it('starts no stage until it is resumed, then is scored', async () => {
    const handle = await startPaused('paused');
    await handle.signal(resumeSignal);
    const { outcome, reward, stageSeconds } = await handle.result();
    assert.deepEqual([outcome, reward], ['scored', 1]);
    assert.ok(stageSeconds.resolveTask > 0);
  });

  it('that is stopped cleans up although it is paused', async () => {
    const handle = await startPaused('stopped');
    await handle.signal(resumeSignal);
    await until(async () => (await handle.query<RolloutStatus>('rolloutStatus')).host !== null);
    await handle.signal(pauseSignal, 'again');
    await handle.signal(stopSignal, 'stale');
    const { outcome, stageSeconds } = await handle.result();
    assert.equal(outcome, 'stale');
    assert.ok('releaseSandbox' in stageSeconds, JSON.stringify(stageSeconds));
    assert.deepEqual(await workers.host.providers.get('local')?.list('test-stack'), []);
  });
});

async function until(reached: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await reached())) {
    assert.ok(Date.now() < deadline, 'not reached within 30 s');
    await sleep(POLL_MS);
  }
}
