import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { listFinished } from '../../activities/control/regrades/list-finished.ts';
import { regradeInput } from '../../workflows/contracts/regrade.ts';

const status = (name: string) => ({ name });

it('a regrade of a run has the rollouts that have just ended, which the list still takes for running', async () => {
  const listed = { ended: 'COMPLETED', late: 'RUNNING', running: 'RUNNING', gone: 'RUNNING' };
  const known = new Map([
    ['late', 'COMPLETED'],
    ['running', 'RUNNING'],
  ]);
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
  assert.deepEqual(found, ['ended', 'late']);
});
