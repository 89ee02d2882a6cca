import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIntake } from '../../activities/host/intake.ts';
import { createLane } from '../../activities/host/lane.ts';
import { createLaneWidth } from '../../activities/host/lane-width.ts';
import { createSlots } from '../../activities/host/slots.ts';
import { whileOpen } from '../../workers/slot-tuner.ts';

describe('a host that takes no new work', () => {
  it('has no free slot, and keeps those of its own rollouts', async (t) => {
    const intake = createIntake();
    const slots = createSlots(2, { intake });
    const epoch = { rollout: 'own', epoch: 1 };
    slots.take(epoch, { expiresAtMs: Number.MAX_SAFE_INTEGER, sweep: false });
    intake.close('drained: test');
    assert.deepEqual([slots.isFree(0), slots.isTakenBy(epoch)], [false, true]);
    const changed = slots.changed(t.signal);
    intake.open();
    await changed;
    assert.equal(slots.isFree(0), true);
  });

  it('reserves no place in a lane until it takes work again', async (t) => {
    const intake = createIntake();
    const lane = createLane(createLaneWidth({ most: 1 }));
    const slots = whileOpen(intake, lane);
    intake.close('drained: test');
    assert.equal(slots.tryReserve(), false);
    const reserved = slots.reserve(t.signal);
    assert.equal(lane.tryReserve(), true); // no place is taken meanwhile
    lane.settle();
    intake.open();
    await reserved;
    assert.equal(lane.tryReserve(), false);
  });
});
