import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { listFinished } from '../../activities/control/regrades/list-finished.ts';
import { regradeInput } from '../../workflows/contracts/regrade.ts';

const status = (name: string) => ({ name });
const stateOf = (ids: readonly string[], state: string) => Object.fromEntries(ids.map((id) => [id, state]));

it('a regrade of a run has the rollouts that have just ended, which the list still takes for running', async () => {
  const waiting = Array.from({ length: 120 }, (_, number) => `waiting-${number}`);
  const listed = {
    ended: 'COMPLETED',
    late: 'RUNNING',
    gone: 'RUNNING',
    ...stateOf(waiting, 'RUNNING'),
    last: 'RUNNING',
  };
  const known = new Map(Object.entries({ late: 'COMPLETED', ...stateOf(waiting, 'RUNNING'), last: 'COMPLETED' }));
  const workflow = {
    async *list() {
      for (const [workflowId, name] of Object.entries(listed)) {
        yield { workflowId, runId: `${workflowId}-1`, status: status(name) };
      }
    },
    getHandle: (id: string, runId: string) => ({
      async describe() {
        const name = known.get(id);
        if (name === undefined) throw new WorkflowNotFoundError('not found', id, runId);
        return { status: status(name) };
      },
    }),
  };
  const found: string[] = [];
  for await (const { workflowId } of listFinished(
    { workflow } as unknown as Client,
    regradeInput.parse({ run: 'run' }),
  )) {
    found.push(workflowId);
  }
  assert.deepEqual(found, ['ended', 'late', 'last']);
});

it('a regrade of rollouts by name looks all of them up at the same time, and keeps their order', async () => {
  const names = Array.from({ length: 50 }, (_, number) => `rollout-${number}`);
  const all = Promise.withResolvers<void>();
  let asked = 0;
  const workflow = {
    getHandle: (workflowId: string) => ({
      async describe() {
        asked += 1;
        if (asked === names.length) all.resolve();
        await all.promise;
        return { type: 'rollout', workflowId, runId: `${workflowId}-1`, status: status('COMPLETED') };
      },
    }),
  };
  const input = regradeInput.parse({ rollouts: names });
  const found: string[] = [];
  for await (const { workflowId } of listFinished({ workflow } as unknown as Client, input)) found.push(workflowId);
  assert.deepEqual(found, names);
});
