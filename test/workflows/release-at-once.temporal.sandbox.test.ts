import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createReaper } from '../../activities/host/reap.ts';
import type { AgentModule } from '../../infra/agents/own-agents.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import type { HostStages } from '../helpers/temporal/workers.ts';
import { until } from '../helpers/until.ts';

const task = 'generated:train/1/0';

it('keeps the work of an agent whose sandbox is gone when the result is lost, and removes it with the rollout', async () => {
  let lost = false;
  const evaluating = Promise.withResolvers<void>();
  const stages = (real: HostStages): HostStages => ({
    ...real,
    async awaitAgent(input) {
      const end = await real.awaitAgent(input);
      if (lost) return end;
      lost = true;
      assert.ok(end.releaseSeconds !== undefined, JSON.stringify(end));
      throw new Error('the worker was killed before the server had the result');
    },
    async evaluate(input) {
      await evaluating.promise;
      return real.evaluate(input);
    },
  });
  const rollouts = await startRollouts(() => ({ stages }));
  try {
    const { results } = rollouts.host;
    const running = rollouts.run('lost', { task, agent: 'oracle' });
    const kept = await until(async () => {
      const [epoch] = await results.list(0);
      // What is listed first may be the draft, which the next look no longer finds.
      return epoch !== undefined && (await results.find(epoch)) !== null ? epoch : null;
    });
    evaluating.resolve();
    const { outcome, reward, epochs, diff } = await running;
    assert.deepEqual([lost, outcome, reward, epochs], [true, 'scored', 1, 1]);
    assert.deepEqual((await results.find(kept))?.diff, diff);

    const aged = { ...rollouts.host, results: { ...results, list: () => results.list(0) } };
    const reaper = createReaper(aged, rollouts.client);
    await until(async () => {
      await reaper.reap(AbortSignal.timeout(240_000));
      return (await results.find(kept)) === null;
    });
  } finally {
    await rollouts.close();
  }
});

/** A user's own agent whose diff is another one each time. */
const clock: AgentModule = () => ({
  name: 'clock',
  description: 'writes the time',
  usesModel: false,
  needsSolution: false,
  runtimes: async () => [],
  command: () => ({ argv: ['sh', '-c', 'date +%s.%N >time.txt'], env: {}, files: new Map() }),
  stopReason: () => 'exited',
});

it('gives a rollout that was reset to its beginning a new agent', async () => {
  const rollouts = await startRollouts(() => ({ ownAgents: [{ from: 'the test', module: clock }] }));
  try {
    const { client } = rollouts;
    const first = await rollouts.run('reset', { task, agent: 'clock' });
    assert.equal((await rollouts.host.results.list(0)).length, 1);
    const { events } = await client.workflow.getHandle(first.workflowId).fetchHistory();
    const begun = events?.find((event) => event.workflowTaskCompletedEventAttributes);
    const { runId } = await client.workflowService.resetWorkflowExecution({
      namespace: client.options.namespace,
      workflowExecution: { workflowId: first.workflowId },
      workflowTaskFinishEventId: begun?.eventId ?? null,
      requestId: 'reset',
      reason: 'by the test',
    });
    const second: RolloutResult = await client.workflow.getHandle(first.workflowId, runId).result();
    assert.deepEqual([first.outcome, second.outcome, second.rollout], ['scored', 'scored', first.rollout]);
    // The record of the first result counts, although another agent has worked.
    assert.equal(second.diff?.patch.digest, first.diff?.patch.digest);
    const { events: again = [] } = await client.workflow.getHandle(first.workflowId, runId).fetchHistory();
    const results = (again ?? []).flatMap(
      (event) => event.activityTaskCompletedEventAttributes?.result?.payloads ?? [],
    );
    const patches = results.flatMap(({ data }) => JSON.parse(String(data))?.diff?.patch.digest ?? []);
    assert.equal(patches.length, 1);
    assert.notEqual(patches[0], first.diff?.patch.digest);
  } finally {
    await rollouts.close();
  }
});
