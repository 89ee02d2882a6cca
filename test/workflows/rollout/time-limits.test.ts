import assert from 'node:assert/strict';
import { it } from 'node:test';
import { imageMs, timeouts } from '../../../workflows/activity-options.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { timeLimitsOf } from '../../../workflows/rollout/time-limits.ts';

it('lets a session outlast its agent, however long the provisioning beside it takes', () => {
  const task = { agentTimeoutSec: 3_600 } as Task;
  for (const input of [{}, { agentTimeoutSec: 10 }, { sandboxLifetimeSec: 100_000 }]) {
    const { agentMs, lifetimeMs, sessionMs } = timeLimitsOf(input, task);
    const provisioning = timeouts.heavy.retry.maximumAttempts * (imageMs + 5 * 60_000);
    assert.ok(sessionMs >= provisioning + agentMs && sessionMs >= lifetimeMs);
  }
});

it('gives a sandbox the time of all steps of its task', () => {
  const steps = [{ name: 'one', agentTimeoutSec: 1000 }, { name: 'two' }];
  const task = { agentTimeoutSec: 3_600, evaluationTimeoutSec: 100, steps } as unknown as Task;
  const { lifetimeMs, agentMs } = timeLimitsOf({}, task);
  assert.deepEqual([lifetimeMs, agentMs], [(1000 + 100 + 3_600 + 100 + 2 * 900) * 1000, 3_600_000]);
  assert.equal(timeLimitsOf({ agentTimeoutSec: 10 }, task).lifetimeMs, (2 * 10 + 2 * 100 + 2 * 900) * 1000);
});
