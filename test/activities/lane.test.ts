import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLane, type Lane } from '../../activities/host/lane.ts';
import { createLaneWidth } from '../../activities/host/lane-width.ts';

const { signal } = new AbortController();
const fails = async (): Promise<never> => {
  throw new Error('out of time');
};

/** Resolves to whether the promise has settled by now. */
const isSettled = (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

describe('the width of a lane', () => {
  it('is halved by an overload, down to one', () => {
    let now = 0;
    const width = createLaneWidth({ most: 5, clock: () => now });
    const seen = [5, 2, 1, 1];
    for (const expected of seen) {
      assert.equal(width.now, expected);
      now += 1;
      width.ended('overloaded', now);
    }
    assert.equal(width.halved, 2);
  });

  it('is halved once for stages that ran at the same time', () => {
    let now = 10;
    const width = createLaneWidth({ most: 8, clock: () => now });
    for (let stage = 0; stage < 8; stage += 1) {
      width.ended('overloaded', stage);
      now += 1;
    }
    assert.deepEqual([width.now, width.halved], [4, 1]);
  });

  it('is halved by a stage that is slow, and not by one that just is not', () => {
    let now = 0;
    const width = createLaneWidth({ most: 4, slowMs: 100, clock: () => now });
    now = 100;
    width.ended('well', 0);
    assert.equal(width.now, 4);
    now = 101;
    width.ended('well', 0);
    assert.equal(width.now, 2);
  });

  it('grows by about one when as many stages as it is wide succeed, up to its first value', () => {
    const width = createLaneWidth({ most: 4, clock: () => 1 });
    width.ended('overloaded', 1);
    width.ended('well', 1);
    assert.equal(width.now, 2);
    width.ended('well', 1);
    width.ended('well', 1);
    assert.equal(width.now, 3);
    for (let stage = 0; stage < 100; stage += 1) width.ended('well', 1);
    assert.equal(width.now, 4);
  });
});

describe('a lane', () => {
  const laneOf = (most: number): Lane => createLane(createLaneWidth({ most }));

  it('reserves no more places than it is wide, and grants them in the order of the requests', async () => {
    const lane = laneOf(2);
    await lane.reserve(signal);
    assert.equal(lane.tryReserve(), true);
    assert.equal(lane.tryReserve(), false);
    const [third, fourth] = [lane.reserve(signal), lane.reserve(signal)];
    assert.deepEqual([await isSettled(third), await isSettled(fourth)], [false, false]);
    lane.settle();
    assert.deepEqual([await isSettled(third), await isSettled(fourth)], [true, false]);
    lane.settle();
    await fourth;
  });

  it('forgets a request that is given up', async () => {
    const lane = laneOf(1);
    await lane.reserve(signal);
    const giveUp = new AbortController();
    const given = lane.reserve(giveUp.signal);
    giveUp.abort(new Error('shut down'));
    await assert.rejects(given, /shut down/);
    lane.settle();
    assert.equal(lane.tryReserve(), true);
  });

  it('grants fewer places after an overload, and the old number after successes', async () => {
    const lane = laneOf(2);
    await assert.rejects(
      lane.run(fails, () => true),
      /out of time/,
    );
    assert.deepEqual([lane.tryReserve(), lane.tryReserve()], [true, false]);
    await lane.run(
      async () => undefined,
      () => false,
    );
    assert.equal(lane.tryReserve(), true);
  });

  it('keeps its width after a failure that says nothing about load', async () => {
    const lane = laneOf(2);
    await assert.rejects(lane.run(fails, () => false));
    assert.equal(lane.width.now, 2);
  });

  it('lets a stage of another activity in beside a worker that only polls, and never more than it is wide', async () => {
    const lane = laneOf(1);
    await lane.reserve(signal);
    assert.deepEqual([lane.tryEnter(), lane.tryEnter()], [true, false]);
    lane.settle();
    assert.equal(lane.tryReserve(), false);
    lane.leave();
    assert.equal(lane.tryEnter(), true);
  });

  it('gives a stage that does not wait a place only if it is free', () => {
    const lane = laneOf(1);
    assert.deepEqual([lane.tryEnter(), lane.tryEnter()], [true, false]);
    lane.leave();
    assert.equal(lane.tryEnter(), true);
  });

  it('lets a worker of one queue poll while that of another one does, and runs no more stages than it is wide', async () => {
    const lane = laneOf(1);
    const other = lane.addQueue();
    await lane.reserve(signal);
    assert.deepEqual([lane.tryReserve(), other.tryReserve()], [false, true]);
    const end = await lane.begin(signal);
    const second = other.begin(signal);
    assert.equal(await isSettled(second), false);
    lane.settle();
    end();
    const endSecond = await second;
    assert.equal(lane.tryReserve(), false, 'a stage of the other queue has the only place');
    assert.equal(lane.tryEnter(), false);
    endSecond();
    other.settle();
    assert.equal(lane.tryReserve(), true);
  });

  it('forgets a stage from its queue that is cancelled while it waits for a place', async () => {
    const lane = laneOf(1);
    const other = lane.addQueue();
    const end = await lane.begin(signal);
    const giveUp = new AbortController();
    const waiting = other.begin(giveUp.signal);
    giveUp.abort(new Error('cancelled'));
    await assert.rejects(waiting, /cancelled/);
    end();
    assert.deepEqual([lane.tryReserve(), other.tryReserve()], [true, true]);
    (await other.begin(signal))();
  });
});
