import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApplicationFailure } from '@temporalio/activity';
import { createSlots } from '../../activities/host/slots.ts';
import { createSweepShare } from '../../activities/host/sweep-share.ts';
import { labelsOf, labelsToDocker } from '../../infra/sandbox/docker/labels.ts';

const attempt = (rollout: string) => ({ rollout, epoch: 1 });
const runs = () => Promise.resolve(true);

it('rounds the share of sweeps down, to one slot at least', async () => {
  const had = await Promise.all(
    [1, 2, 3, 5].map(async (capacity) => {
      const slots = createSlots(capacity);
      const { take } = createSweepShare({ name: 'here', slots }, 0.5, runs);
      await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((name) => take(attempt(name), 1)));
      return slots.takenBySweeps;
    }),
  );
  assert.deepEqual(had, [1, 1, 1, 2]);
});

it('grants an attempt its slot again, and refuses others until a slot of the share is released', async () => {
  const slots = createSlots(4);
  const { take } = createSweepShare({ name: 'here', slots }, 0.25, runs);
  slots.take(attempt('training'), { expiresAtMs: 1, sweep: false });
  await take(attempt('first'), 1);
  await take(attempt('first'), 1);
  await assert.rejects(take(attempt('second'), 1), { type: 'SweepShareTaken', nonRetryable: false });
  slots.release(attempt('first'));
  await take(attempt('second'), 1);
  assert.deepEqual([slots.taken, slots.takenBySweeps], [2, 1]);
});

it('grants simultaneous requests no more slots than the share has', async () => {
  const slots = createSlots(4);
  const { take } = createSweepShare({ name: 'here', slots }, 0.5, runs);
  const all = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => take(attempt(name), 1)));
  assert.deepEqual(
    all.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected'],
  );
  assert.equal(slots.takenBySweeps, 2);
});

it('delays retries so that all waiting rollouts together make four a second', async (t) => {
  t.mock.timers.enable({ apis: ['Date'] });
  const slots = createSlots(4);
  const { take } = createSweepShare({ name: 'here', slots }, 0.25, runs);
  await take(attempt('first'), 1);
  const delays: unknown[] = [];
  for (let index = 0; index < 40; index += 1) {
    await take(attempt(`waits-${index}`), 1).catch((failure: ApplicationFailure) =>
      delays.push(failure.nextRetryDelay),
    );
  }
  assert.deepEqual([delays[0], delays[7], delays[39]], [2_000, 2_000, 10_000]);
});

it('counts the sandboxes of sweeps that a restarted host finds', async () => {
  const labels = { stack: 'stack', run: '', ...attempt('found'), purpose: 'agent' as const, sweep: true as const };
  const found = labelsOf(labelsToDocker({ ...labels, expiresAtMs: 1 }));
  assert.ok(found?.sweep);
  const slots = createSlots(4);
  await slots.takeListed(async () => [{ name: 'found', kind: 'docker', labels: found, createdAtMs: 0, running: true }]);
  assert.deepEqual([slots.taken, slots.takenBySweeps], [1, 1]);
});
