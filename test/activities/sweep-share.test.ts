import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApplicationFailure } from '@temporalio/activity';
import { createPlaces } from '../../activities/host/places.ts';
import { createSweepShare } from '../../activities/host/sweep-share.ts';
import { labelsOf, labelsToDocker } from '../../infra/sandbox/docker/labels.ts';

const attempt = (rollout: string) => ({ rollout, epoch: 1 });
const runs = () => Promise.resolve(true);

it('the share of sweeps is rounded down, and one place at least', async () => {
  const had = await Promise.all(
    [1, 2, 3, 5].map(async (capacity) => {
      const places = createPlaces(capacity);
      const { take } = createSweepShare({ name: 'here', places }, 0.5, runs);
      await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((name) => take(attempt(name), 1)));
      return places.takenBySweeps;
    }),
  );
  assert.deepEqual(had, [1, 1, 1, 2]);
});

it('an attempt that holds its place has it again, another one has none, until a place of the share is given back', async () => {
  const places = createPlaces(4);
  const { take } = createSweepShare({ name: 'here', places }, 0.25, runs);
  places.take(attempt('training'), { expiresAtMs: 1, sweep: false });
  await take(attempt('first'), 1);
  await take(attempt('first'), 1);
  await assert.rejects(take(attempt('second'), 1), { type: 'SweepShareTaken', nonRetryable: false });
  places.giveBack(attempt('first'));
  await take(attempt('second'), 1);
  assert.deepEqual([places.taken, places.takenBySweeps], [2, 1]);
});

it('of several that come at the same moment, only as many as the share has places for get one', async () => {
  const places = createPlaces(4);
  const { take } = createSweepShare({ name: 'here', places }, 0.5, runs);
  const all = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => take(attempt(name), 1)));
  assert.deepEqual(
    all.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected'],
  );
  assert.equal(places.takenBySweeps, 2);
});

it('the more wait, the later each comes again: four a second of all', async (t) => {
  t.mock.timers.enable({ apis: ['Date'] });
  const places = createPlaces(4);
  const { take } = createSweepShare({ name: 'here', places }, 0.25, runs);
  await take(attempt('first'), 1);
  const delays: unknown[] = [];
  for (let index = 0; index < 40; index += 1) {
    await take(attempt(`waits-${index}`), 1).catch((failure: ApplicationFailure) =>
      delays.push(failure.nextRetryDelay),
    );
  }
  assert.deepEqual([delays[0], delays[7], delays[39]], [2_000, 2_000, 10_000]);
});

it('a host that was started again counts the sandboxes of sweeps that it finds', async () => {
  const labels = { stack: 'stack', run: '', ...attempt('found'), purpose: 'agent' as const, sweep: true as const };
  const found = labelsOf(labelsToDocker({ ...labels, expiresAtMs: 1 }));
  assert.ok(found?.sweep);
  const places = createPlaces(4);
  await places.takeFound(async () => [{ name: 'found', kind: 'docker', labels: found, createdAtMs: 0, running: true }]);
  assert.deepEqual([places.taken, places.takenBySweeps], [1, 1]);
});
