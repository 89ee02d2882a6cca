import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createPlacementOrder, type Placed } from '../../activities/host/placement-order.ts';
import { createSlots } from '../../activities/host/slots.ts';
import { readFleetSlots } from '../../infra/hosts/fleet-slots.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { createHosts, type HostRecord } from '../../infra/store/hosts.ts';

type Weights = Readonly<Record<string, number>>;

/** A host on which rollouts of every run wait, and each free slot goes to the run that comes first. */
function openHost(capacity: number, weights: Weights, fleet: { readonly before: number; readonly all: number }) {
  const slots = createSlots(capacity);
  const order = createPlacementOrder(slots);
  const queues = Object.entries(weights).map(([share, weight]) => ({ name: share, share, sweep: false, weight }));
  order.follow(queues);
  order.inFleet(fleet);
  const states = queues.map((queue) => ({ queue, placing: new Set(), waiting: 0, missed: 0 }) satisfies Placed);
  const open: { readonly rollout: string; readonly epoch: number }[] = [];
  let placed = 0;
  return {
    held: (share: string) => slots.takenBy({ share, sweep: false }),
    /** Fills the slots, and returns the runs that got them. */
    fill(): string[] {
      const got: string[] = [];
      while (slots.isFree(0)) {
        const first = states.reduce((best, one) => (order.comesBefore(one, best) ? one : best));
        for (const one of states) one.missed = one === first ? 0 : one.missed + 1;
        const { share } = first.queue;
        placed += 1;
        const epoch = { rollout: `rollout-${placed}`, epoch: 1 };
        slots.take(epoch, { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false, share });
        open.push(epoch);
        got.push(share);
      }
      return got;
    },
    /** Ends the rollout at this place of those that are open. */
    end(place: number): void {
      const [epoch] = open.splice(place % open.length, 1);
      if (epoch !== undefined) slots.release(epoch);
    },
  };
}

function openFleet(capacities: readonly number[], weights: Weights) {
  const all = capacities.reduce((sum, one) => sum + one, 0);
  return capacities.map((capacity, index) => {
    const before = capacities.slice(0, index).reduce((sum, one) => sum + one, 0);
    return openHost(capacity, weights, { before, all });
  });
}

describe('runs on hosts with few slots', () => {
  const fleets: readonly (readonly [readonly number[], Weights])[] = [
    [[3, 3], { heavy: 3, light: 1 }],
    [[1, 1, 1, 1], { heavy: 3, light: 1 }],
    [Array.from({ length: 16 }, () => 1), { heavy: 3, light: 1, late: 4 }],
    [[8, 1, 5, 2], { heavy: 3, light: 1, late: 4 }],
    [Array.from({ length: 5 }, () => 3), { a: 1, b: 1, c: 1, d: 1 }],
    [[2, 3, 2], { heavy: 0.5, light: 0.2 }],
  ];
  for (const [capacities, weights] of fleets) {
    const text = `${JSON.stringify(weights)} on ${capacities.length} hosts with ${capacities.join(', ')} slots`;
    it(`hold their shares of the whole fleet: ${text}`, () => {
      const hosts = openFleet(capacities, weights);
      const slots = capacities.reduce((sum, one) => sum + one, 0);
      const total = Object.values(weights).reduce((sum, one) => sum + one, 0);
      for (let turn = 0; turn < 20; turn += 1) {
        for (const host of hosts) {
          host.end(turn * 7);
          host.fill();
        }
        for (const [share, weight] of Object.entries(weights)) {
          const held = hosts.reduce((sum, host) => sum + host.held(share), 0);
          const due = (slots * weight) / total;
          assert.ok(Math.abs(held - due) <= 1, `turn ${turn}: expected ${share} to hold about ${due}, got ${held}`);
        }
      }
    });
  }

  it('get placements by weight where no slot is due to a light one', () => {
    const [host] = openFleet([1], { heavy: 3, light: 1 });
    assert.ok(host);
    const got: string[] = [];
    for (let turn = 0; turn < 12; turn += 1) {
      got.push(...host.fill());
      host.end(0);
    }
    assert.deepEqual(
      ['heavy', 'light'].map((share) => got.filter((one) => one === share).length),
      [9, 3],
      got.join(' '),
    );
  });
});

it('the slots of a fleet are those of the hosts that take new work, in the order of their names', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-fleet-'));
  try {
    const hosts = createHosts(createDirectory(directory));
    const decision = { since: new Date(0).toISOString(), reason: 'test' };
    const add = async (name: string, capacity: number, changes: Partial<HostRecord> = {}) => {
      const facts = {
        generation: 1,
        machine: name,
        renewal: 'r',
        version: '0',
        taken: 0,
        sandboxes: [],
        leaseMs: 60_000,
      };
      const renewedAt = decision.since;
      await hosts.replace(name, { ...facts, capacity, renewedAt, draining: null, lost: null, ...changes }, null);
    };
    await add('box-1', 4);
    await add('box-2', 8, { draining: decision });
    await add('box-3', 16, { lost: decision });
    await add('box-5', 32);
    assert.deepEqual(await readFleetSlots(hosts, { name: 'box-4', capacity: 2 }), { before: 4, all: 38 });
    assert.deepEqual(await readFleetSlots(hosts, { name: 'box-5', capacity: 32 }), { before: 4, all: 36 });
  } finally {
    await rm(directory, { recursive: true });
  }
});
