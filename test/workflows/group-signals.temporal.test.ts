import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { GroupRequest, GroupSummary } from '../../workflows/contracts/group.ts';
import { rolloutId } from '../../workflows/contracts/ids.ts';
import { pauseSignal, resumeSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

it('passes the signals of a group on to each rollout in their order, one after the other', async () => {
  await using undo = new AsyncDisposableStack();
  const stack = await startScriptedStack();
  undo.defer(() => stack.close());
  let atWork = 0;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  undo.defer(end);
  stack.script.agent = () => {
    atWork += 1;
    return ended;
  };
  const { client } = stack.server;
  const request: GroupRequest = { task: 'generated:test/1/0', rolloutsPerGroup: 2 };
  const options = { taskQueue: controlQueue, workflowId: 'signalled', args: [request] };
  const handle = await client.workflow.start('group', options);
  await until(() => atWork === 2);
  const pairs = 8;
  const sent = Array.from({ length: pairs }, () => [pauseSignal.name, resumeSignal.name]).flat();
  for (let pair = 0; pair < pairs; pair += 1) {
    await handle.signal(pauseSignal, 'lunch');
    await handle.signal(resumeSignal);
  }
  for (const index of [0, 1]) {
    const rollout = client.workflow.getHandle(rolloutId('signalled', index));
    const received = await until(async () => {
      const events = (await rollout.fetchHistory()).events ?? [];
      const names = events.flatMap((event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? []);
      return names.length === sent.length && names;
    });
    assert.deepEqual(received, sent);
  }
  end();
  const { outcomes }: GroupSummary = await handle.result();
  assert.equal(outcomes.scored, 2);
  // Signals that are under way at the same time have no order, whatever it was this time.
  const underWay = new Map<string, number>();
  for (const event of (await handle.fetchHistory()).events ?? []) {
    const begun = event.signalExternalWorkflowExecutionInitiatedEventAttributes?.workflowExecution?.workflowId;
    if (begun) underWay.set(begun, (underWay.get(begun) ?? 0) + 1);
    const arrived = event.externalWorkflowExecutionSignaledEventAttributes?.workflowExecution?.workflowId;
    if (arrived) underWay.set(arrived, (underWay.get(arrived) ?? 0) - 1);
    assert.ok(
      [...underWay.values()].every((count) => count <= 1),
      `${begun} gets two signals at once`,
    );
  }
});
