import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, before, describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { guardDisk } from '../../activities/control/disk-guard.ts';
import type { Level } from '../../infra/machine/level.ts';
import { pollingMachines } from '../../infra/temporal/pollers.ts';
import { pauseSignal, resumeSignal, runStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest } from '../../workflows/contracts/run.ts';
import type { SweepRequest } from '../../workflows/contracts/sweep.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

describe('the guard of the disk', () => {
  let stack: ScriptedStack;
  const agents = Promise.withResolvers<void>();
  before(async () => {
    stack = await startScriptedStack({ script: { reward: () => 1, agent: () => agents.promise } });
  });
  after(() => stack.close());

  const megabytes = (free: number): readonly Level[] => [
    { resource: 'disk', free, total: 100_000, limit: 'the disk of /home' },
  ];
  let note: string | null = null;
  /** The machines that have a control worker. */
  let machines: readonly string[] = ['one', 'two'];
  async function guard(freeMb: number, machine = 'one') {
    const { paused, resumed } = await guardDisk({
      client: stack.server.client,
      machine,
      controlMachines: async () => new Set(machines),
      readDisks: () => megabytes(freeMb),
      setNote: async (text) => {
        note = text;
      },
    });
    return { paused: [...paused].sort(), resumed: [...resumed].sort() };
  }

  const start = (type: string, workflowId: string, request: RunRequest | SweepRequest): Promise<WorkflowHandle> =>
    stack.server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [request] });
  const pausedBecause = async (handle: WorkflowHandle): Promise<string | null> =>
    (await handle.query(runStatusQuery)).pausedBecause;
  /** Waits until the server lists these workflows as paused, or as not paused. */
  async function untilListed(ids: readonly string[], paused: boolean): Promise<void> {
    for (const id of ids) {
      await until(async () => {
        const query = `WorkflowId="${id}" AND ExecutionStatus="Running"`;
        for await (const { memo } of stack.server.client.workflow.list({ query })) {
          return (memo?.phase === 'paused') === paused && memo?.phase !== 'preparing';
        }
        return false;
      });
    }
  }

  it('pauses what is open while the disk is low, and resumes only what it paused', async () => {
    const run = await start('trainingRun', 'run', {
      tasks: 'generated:train/1',
      steps: 1,
      groupsPerStep: 2,
      rolloutsPerGroup: 2,
    });
    const sweep = await start('evaluationSweep', 'sweep', { tasks: 'set', count: 4, concurrency: 1 });
    const other = await start('evaluationSweep', 'by-hand', { tasks: 'set', count: 4, concurrency: 1 });
    await other.signal(pauseSignal, 'lunch');
    await untilListed(['run', 'sweep'], false);
    await untilListed(['by-hand'], true);

    assert.deepEqual(await guard(50_000), { paused: [], resumed: [] });
    assert.deepEqual(await guard(1_500), { paused: ['run', 'sweep'], resumed: [] });
    assert.match(
      String(await pausedBecause(run)),
      /^the disk of the control worker on one is nearly full: 1\.46 GB are/,
    );
    assert.match(String(await pausedBecause(sweep)), /it resumes by itself from 3\.00 GB on$/);
    assert.equal(await pausedBecause(other), 'lunch');
    assert.match(String(note), /^runs are paused: the disk of the control worker on one is nearly full/);

    await untilListed(['run', 'sweep'], true);
    assert.deepEqual(await guard(1_000), { paused: [], resumed: [] });
    assert.deepEqual(await guard(2_500), { paused: [], resumed: [] }, 'expected no change between the two limits');
    assert.deepEqual(await guard(4_000), { paused: [], resumed: ['run', 'sweep'] });
    assert.equal(note, null);
    assert.deepEqual([await pausedBecause(run), await pausedBecause(other)], [null, 'lunch']);

    agents.resolve();
    await other.signal(resumeSignal);
    for (const handle of [run, sweep, other]) await handle.result();
  });

  it('resumes what it paused on another machine only once that has no control worker any more', async () => {
    const held = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => held.promise };
    const sweep = await start('evaluationSweep', 'elsewhere', { tasks: 'set', count: 2 });
    await untilListed(['elsewhere'], false);
    assert.deepEqual(await guard(1_500, 'one'), { paused: ['elsewhere'], resumed: [] });
    await untilListed(['elsewhere'], true);
    assert.deepEqual(await guard(50_000, 'two'), { paused: [], resumed: [] });
    // The workers of this test have the identities that the SDK gives them.
    assert.deepEqual(await pollingMachines(stack.server.client, controlQueue, 'activity'), new Set([hostname()]));
    machines = ['two'];
    assert.deepEqual(await guard(50_000, 'two'), { paused: [], resumed: ['elsewhere'] });
    await untilListed(['elsewhere'], false);
    held.resolve();
    await sweep.result();
  });

  it('leaves the reason of a pause that came between, and resumes nothing that was paused for another', async () => {
    const sweep = await start('evaluationSweep', 'between', { tasks: 'set', count: 2 });
    await sweep.signal(pauseSignal, 'by a user');
    await sweep.signal(pauseSignal, 'the disk is nearly full', 'unless-paused');
    await sweep.signal(resumeSignal, 'the disk is nearly full');
    assert.equal(await pausedBecause(sweep), 'by a user');
    await sweep.signal(resumeSignal);
    await sweep.result();
  });
});
