import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Client } from '@temporalio/client';
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

it('gives a rollout that was reset a new agent only if its record is gone', async () => {
  const rollouts = await startRollouts(() => ({ ownAgents: [{ from: 'the test', module: clock }] }));
  try {
    const { client, home } = rollouts;
    const first = await rollouts.run('reset', { task, agent: 'clock' });
    const recorded = await resetToBeginning(client, first);
    assert.deepEqual(recorded, { result: first, patches: [] });

    // The result of its agent is still kept on the host.
    assert.equal((await rollouts.host.results.list(0)).length, 1);
    await rm(join(home, 'rollouts'), { recursive: true });
    const { result, patches } = await resetToBeginning(client, first);
    assert.deepEqual([first.outcome, result.outcome, result.rollout], ['scored', 'scored', first.rollout]);
    assert.deepEqual(patches, [result.diff?.patch.digest]);
    assert.notEqual(patches[0], first.diff?.patch.digest);
  } finally {
    await rollouts.close();
  }
});

/** Resets a rollout to its first workflow task. Returns its result, and the digests of the diffs that were captured since. */
async function resetToBeginning(client: Client, { workflowId, rollout }: RolloutResult) {
  const { events } = await client.workflow.getHandle(workflowId, rollout).fetchHistory();
  const begun = events?.find((event) => event.workflowTaskCompletedEventAttributes);
  const { runId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId: rollout },
    workflowTaskFinishEventId: begun?.eventId ?? null,
    requestId: randomUUID(),
    reason: 'by the test',
  });
  const handle = client.workflow.getHandle(workflowId, runId);
  const result: RolloutResult = await handle.result();
  const { events: again } = await handle.fetchHistory();
  const payloads = again?.flatMap((event) => event.activityTaskCompletedEventAttributes?.result?.payloads ?? []) ?? [];
  const patches: string[] = payloads.flatMap(({ data }) => JSON.parse(String(data))?.diff?.patch.digest ?? []);
  return { result, patches };
}
