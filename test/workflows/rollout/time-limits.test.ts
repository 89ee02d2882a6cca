import assert from 'node:assert/strict';
import { it } from 'node:test';
import { imageMs, timeouts } from '../../../workflows/activity-options.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { timeLimitsOf, waitingWithin } from '../../../workflows/rollout/time-limits.ts';

it('lets a session outlast its agent, however long the provisioning beside it takes', () => {
  const task = { agentTimeoutSec: 3_600 } as Task;
  for (const input of [{}, { agentTimeoutSec: 10 }, { sandboxLifetimeSec: 100_000 }]) {
    const { agentMs, lifetimeMs, sessionMs } = timeLimitsOf(input, { task, usesModel: false });
    const provisioning = timeouts.heavy.retry.maximumAttempts * (imageMs + 5 * 60_000);
    assert.ok(sessionMs >= provisioning + agentMs && sessionMs >= lifetimeMs);
  }
});

it('gives a sandbox the time of all steps of its task', () => {
  const steps = [{ name: 'one', agentTimeoutSec: 1000 }, { name: 'two' }];
  const task = { agentTimeoutSec: 3_600, evaluationTimeoutSec: 100, steps } as unknown as Task;
  const usesModel = false;
  const { lifetimeMs, agentMs } = timeLimitsOf({}, { task, usesModel });
  assert.deepEqual([lifetimeMs, agentMs], [(1000 + 100 + 3_600 + 100 + 2 * 900) * 1000, 3_600_000]);
  assert.equal(
    timeLimitsOf({ agentTimeoutSec: 10 }, { task, usesModel }).lifetimeMs,
    (2 * 10 + 2 * 100 + 2 * 900) * 1000,
  );
});

it('gives a sandbox the time for which the clocks of its agents may stand still, if they call a model', () => {
  const steps = [{ name: 'one' }, { name: 'two' }];
  const task = { agentTimeoutSec: 100, evaluationTimeoutSec: 10, steps } as unknown as Task;
  const limits = (usesModel: boolean) => timeLimitsOf({ engineWaitingSec: 50 }, { task, usesModel });
  const least = 2 * (100 + 10 + 900);
  const { lifetimeMs, waitingMs, agentMs } = limits(true);
  assert.deepEqual([lifetimeMs, waitingMs, agentMs], [(least + 2 * 50) * 1000, 50_000, 100_000]);
  assert.equal(limits(true).waitingInAllMs, 100_000);
  assert.deepEqual([limits(false).lifetimeMs, limits(false).waitingMs], [least * 1000, 0]);
  const other = timeLimitsOf({ engineWaitingSec: 50, upstream: 'other' }, { task, usesModel: true });
  assert.deepEqual(other, limits(false));
});

it('lets the clock of an agent stand still for what its sandbox leaves, after the waits of earlier steps', () => {
  const limits = { waitingMs: 50_000 };
  assert.equal(waitingWithin(limits, undefined, 40_000), 50_000);
  assert.deepEqual(
    [80_000, 60_000, 10_000].map((left) => waitingWithin(limits, left, 20_000)),
    [50_000, 40_000, 1],
  );
  assert.equal(waitingWithin({ waitingMs: 0 }, 0, 0), 0);
});
