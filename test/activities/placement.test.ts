import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createPlacementTurns, type PlacementPoll, type PlacementTurn } from '../../activities/host/placement-turns.ts';
import { createSlots, type Slots } from '../../activities/host/slots.ts';
import { createSweepShare } from '../../activities/host/sweep-share.ts';
import { flatLabels, labelsOf } from '../../infra/sandbox/labels.ts';
import { until } from '../helpers/until.ts';

const epoch = (rollout: string) => ({ rollout, epoch: 1 });
const stopped = new AbortController();
after(() => stopped.abort());

/** Polls a placement queue as a worker does: it asks for its turn, and places what the test gives it. */
function poll(turn: PlacementTurn) {
  let current: PlacementPoll | null = null;
  const ask = (): void =>
    void turn.next(stopped.signal).then(
      (next) => {
        current = next;
      },
      () => undefined,
    );
  ask();
  return {
    mayPoll: () => current !== null,
    /** Ends the poll with a rollout that is not placed here. */
    decline(): void {
      const used = current;
      current = null;
      ask();
      used?.placing();
      used?.ended();
    },
    place(slots: Slots, rollout: string, sweep: boolean, share?: string): void {
      const used = current;
      assert.ok(used !== null);
      current = null;
      // A worker asks for its next turn before the rollout is placed.
      ask();
      used.placing();
      slots.take(epoch(rollout), { expiresAtMs: Number.POSITIVE_INFINITY, sweep, share });
      used.ended();
    },
  };
}

/** `waiting` says how many rollouts a queue has at the server; a poll that brings none at once is no proof against that. */
function open(capacity: number, share: number, training: boolean, waiting: (queue: string) => number = () => 0) {
  const slots = createSlots(capacity);
  const turns = createPlacementTurns({
    slots,
    share: createSweepShare(slots, share, async () => training),
    backlogOf: async (queue) => waiting(queue),
  });
  const runs = poll(turns.of({ name: 'runs', sweep: false, weight: 1 }));
  return { slots, turns, runs, sweeps: poll(turns.of({ name: 'sweeps', sweep: true, weight: 1 })) };
}

describe('the turns of the placement queues', () => {
  it('give sweeps their share while training runs, rounded down, and one slot at least', async () => {
    for (const [capacity, share] of [
      [1, 1],
      [3, 1],
      [5, 2],
    ] as const) {
      const { slots, sweeps } = open(capacity, 0.5, true);
      for (let index = 0; index < share; index += 1) {
        await until(sweeps.mayPoll);
        sweeps.place(slots, `sweep-${index}`, true);
      }
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(sweeps.mayPoll(), false, `${capacity} slots`);
      slots.release(epoch('sweep-0'));
      await until(sweeps.mayPoll);
    }
  });

  it('give sweeps every slot if no training runs', async () => {
    const { slots, sweeps } = open(2, 0.5, false);
    for (const name of ['first', 'second']) {
      await until(sweeps.mayPoll);
      sweeps.place(slots, name, true);
    }
    assert.equal(slots.takenBySweeps, 2);
  });

  it('leave a run whose rollouts only other hosts can take to them, and give its turns to the others', async () => {
    // Both have rollouts that wait.
    const { slots, turns } = open(3, 0.5, false, (queue) => (queue === 'runs' || queue === 'sweeps' ? 0 : 10));
    slots.take(epoch('first'), { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false, share: 'here' });
    const elsewhere = { name: 'elsewhere', sweep: false, share: 'elsewhere', weight: 1 };
    const [first, second] = [poll(turns.of(elsewhere)), poll(turns.of({ ...elsewhere, name: 'here', share: 'here' }))];
    await until(first.mayPoll);
    assert.equal(second.mayPoll(), false);
    turns.leaveToOthers('elsewhere');
    first.decline();
    await until(second.mayPoll);
    assert.equal(first.mayPoll(), false);
    second.place(slots, 'here', false, 'here');
    await until(first.mayPoll);
  });

  it('give sweeps none until the poll for runs has found none', async () => {
    let left = 7;
    const { slots, runs, sweeps } = open(8, 0.5, false, (queue) => (queue === 'runs' ? left : 0));
    while (left > 0) {
      await until(runs.mayPoll);
      assert.equal(sweeps.mayPoll(), false);
      runs.place(slots, `run-${left}`, false);
      left -= 1;
    }
    await until(sweeps.mayPoll);
    assert.equal(runs.mayPoll(), true, 'an idle poll for runs keeps no slot from sweeps');
  });

  it('give runs slots by their weights, also one that comes late, and what one leaves to the others', async () => {
    const { slots, turns } = open(8, 0.5, true, (queue) => (queue === 'runs' ? 0 : 1));
    const placed: { readonly name: string; readonly share: string }[] = [];
    const queueOf = (share: string, weight: number) => ({
      share,
      ...poll(turns.of({ name: share, share, sweep: false, weight })),
    });
    let queues = [queueOf('three', 3), queueOf('one', 1)];
    const held = () => queues.map(({ share }) => slots.takenBy({ share, sweep: false }));
    const fill = async (): Promise<void> => {
      while (slots.taken < slots.capacity) {
        const next = await until(() => queues.find(({ mayPoll }) => mayPoll()) ?? null);
        const name = `${next.share}-${Math.random()}`;
        placed.push({ name, share: next.share });
        next.place(slots, name, false, next.share);
      }
    };
    const releaseOldest = async (): Promise<void> => {
      slots.release(epoch(placed.splice(0, 1)[0]?.name ?? ''));
      await fill();
    };
    await fill();
    assert.deepEqual(held(), [6, 2]);

    queues = [...queues, queueOf('late', 4)];
    for (let released = 0; released < slots.capacity; released += 1) await releaseOldest();
    assert.deepEqual(held(), [3, 1, 4]);

    turns.remove('late');
    queues = queues.slice(0, 2);
    for (let released = 0; released < slots.capacity; released += 1) await releaseOldest();
    assert.deepEqual(held(), [6, 2]);
  });

  it('come only when a slot is free', async () => {
    const { slots, runs, sweeps } = open(1, 0.5, false);
    await until(runs.mayPoll);
    runs.place(slots, 'run', false);
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.deepEqual([runs.mayPoll(), sweeps.mayPoll()], [false, false]);
    slots.release(epoch('run'));
    await until(runs.mayPoll);
  });
});

it('counts the sandboxes of sweeps that a restarted host finds', async () => {
  const labels = { stack: 'stack', run: '', ...epoch('found'), purpose: 'agent' as const, sweep: true as const };
  const found = labelsOf(flatLabels({ ...labels, expiresAtMs: 1 }));
  assert.ok(found?.sweep);
  const slots = createSlots(4);
  await slots.takeListed(async () => [{ name: 'found', kind: 'docker', labels: found, createdAtMs: 0, running: true }]);
  assert.deepEqual([slots.taken, slots.takenBySweeps], [1, 1]);
});
