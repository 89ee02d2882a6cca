import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { watchRepeats } from '../../../workers/cli/commands/rollout/watch-repeats.ts';
import { until } from '../../helpers/until.ts';

const failing = (type: string) => ({
  activityType: { name: 'evaluate' },
  attempt: 2,
  state: 1,
  lastFailure: { message: 'no', applicationFailureInfo: { type } },
});

it('reports what fails of the running rollouts, once for each stage and type of failure, and no waits', async () => {
  const types = new Map([
    ['a', 'NetworkUnavailable'],
    ['b', 'NoFreeSlot'],
    ['c', 'StoreUnavailable'],
  ]);
  const asked: string[] = [];
  const describe = async (id: string): Promise<WorkflowExecutionDescription> => {
    asked.push(id);
    if (asked.length === 1) throw new Error('the server is away');
    const pendingActivities = [failing(types.get(id) ?? '')];
    return { raw: { pendingActivities } } as unknown as WorkflowExecutionDescription;
  };
  const reported: string[] = [];
  const client = { workflow: { getHandle: (id: string) => ({ describe: () => describe(id) }) } };
  const watch = watchRepeats(
    client,
    () => [...types.keys()],
    (id, { type }) => void reported.push(`${id} ${type}`),
    1,
  );
  await until(async () => asked.filter((id) => id === 'c').length >= 3);
  types.set('a', 'EvaluationTimedOut');
  await until(async () => reported.length === 3);
  watch.close();
  assert.deepEqual(reported.toSorted(), ['a EvaluationTimedOut', 'a NetworkUnavailable', 'c StoreUnavailable']);
});
