import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { listFinished, requireFinished } from '../../activities/control/regrades/list-finished.ts';
import { resultWithout } from '../../workflows/algorithms/rollout-end.ts';
import { rolloutId, sweepRolloutId } from '../../workflows/contracts/ids.ts';
import type { RolloutRecord } from '../../workflows/contracts/rollout-record.ts';
import { createFileRollouts } from '../helpers/store/file-store.ts';

const recordOf = (workflowId: string): RolloutRecord => ({
  format: 1,
  writer: 'reader',
  result: resultWithout({ rollout: 'a-key', workflowId, task: 'task', agent: 'mini' }, 'gone'),
});

/** A server that knows no workflow but those that run. */
const knowing = (running: readonly string[]): Pick<Client, 'workflow'> =>
  ({
    workflow: {
      getHandle: (workflowId: string) => ({
        async describe() {
          if (!running.includes(workflowId)) throw new WorkflowNotFoundError('not found', workflowId, undefined);
          return { type: 'rollout', status: { name: 'RUNNING' } };
        },
      }),
    },
  }) as unknown as Pick<Client, 'workflow'>;

it('a regrade finds the rollouts that it names by their records alone, and refuses others', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-finished-'));
  try {
    const rollouts = createFileRollouts(home);
    const sources = { client: knowing(['running']), rollouts };
    const ofSweep = [0, 1].map((task) => sweepRolloutId('a sweep', '334fbb79801c', { task, attempt: 0, retry: 0 }));
    const ofRun = rolloutId('run/334fbb79801c/group-7', 0);
    for (const workflowId of [...ofSweep, ofRun, 'by hand']) await rollouts.write(recordOf(workflowId));
    const listed = async (input: Parameters<typeof listFinished>[1]): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const { record } of listFinished(sources, input)) {
        found.push((await rollouts.read(record))?.result.workflowId ?? '');
      }
      return found;
    };
    assert.deepEqual((await listed({ run: 'a sweep' })).toSorted(), ofSweep);
    assert.deepEqual(await listed({ run: 'run' }), [ofRun]);
    assert.deepEqual(await listed({ rollouts: ['by hand', ofRun] }), ['by hand', ofRun]);
    assert.equal((await listed({})).length, 4);
    await assert.rejects(
      requireFinished(sources, { run: 'other' }),
      /expected a run with rollouts that have ended, got other/,
    );
    await assert.rejects(requireFinished(sources, { rollouts: ['running'] }), /got running, which is running/);
    await assert.rejects(requireFinished(sources, { rollouts: ['gone'] }), /got gone, which has no record/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

it('a regrade begins to read the list of a run before all of it is known', async () => {
  let listed = 0;
  const rollouts = {
    find: async () => null,
    async *list() {
      for (; ; listed += 1)
        yield { key: `rollouts/00/run/key/groups-0/group-${listed}/rollout-0.json`, size: 1, changedAtMs: listed };
    },
  };
  const records: string[] = [];
  for await (const { record } of listFinished({ client: knowing([]), rollouts }, { run: 'run' })) {
    records.push(record);
    if (records.length === 3) break;
  }
  assert.ok(records.length === 3 && listed < 5);
});
