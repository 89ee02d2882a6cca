import assert from 'node:assert/strict';
import { it } from 'node:test';
import { imageMs, timeouts } from '../../../workflows/activity-options.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { timeLimitsOf } from '../../../workflows/rollout/time-limits.ts';

it('lets a session outlast its agent, however long the provisioning beside it takes', () => {
  const task = { agentTimeoutSec: 3_600 } as Task;
  for (const input of [{}, { agentTimeoutSec: 10 }, { sandboxLifetimeSec: 100_000 }]) {
    const { agentMs, lifetimeMs, sessionMs } = timeLimitsOf(input, task);
    const provisioning = timeouts.host.retry.maximumAttempts * (imageMs + 5 * 60_000);
    assert.ok(sessionMs >= provisioning + agentMs && sessionMs >= lifetimeMs);
  }
});
