import assert from 'node:assert/strict';
import type { Client } from '@temporalio/client';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { until } from '../helpers/until.ts';

/**
 * Waits for all rollouts of a server's namespace, and returns their results. `count`: how many there are, since the list lags
 * behind.
 */
export async function rolloutResults(client: Client, count = 0): Promise<readonly RolloutResult[]> {
  const query = 'WorkflowType="rollout"';
  await until(async () => (await client.workflow.count(query)).count >= count);
  const results: RolloutResult[] = [];
  for await (const { workflowId } of client.workflow.list({ query })) {
    results.push((await client.workflow.getHandle(workflowId).result()) as RolloutResult);
  }
  return results;
}

/** Asserts that each rollout was scored by its tests, for work that its agent itself ended. */
export function assertNoFaultDecided(rollouts: readonly RolloutResult[]): void {
  for (const { outcome, reward, stop, verdict, trace, workflowId, failure } of rollouts) {
    assert.equal(outcome, 'scored', `${workflowId}: ${JSON.stringify(failure)}`);
    assert.equal(verdict?.kind, 'graded', `${workflowId}: ${JSON.stringify(verdict)}`);
    assert.equal(reward, verdict.value, workflowId);
    assert.ok(stop !== 'crashed' && stop !== 'deadline' && stop !== 'killed', `${workflowId}: ${stop}`);
    assert.ok(trace !== null && trace.engineFailures === 0 && trace.turns > 0, workflowId);
  }
}
