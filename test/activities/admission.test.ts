import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Admission, createAdmission } from '../../activities/host/admission.ts';
import { createSlots, type Slots } from '../../activities/host/slots.ts';
import { needOf, usualTask } from '../../infra/machine/fit.ts';
import type { Level, Resource } from '../../infra/machine/level.ts';
import { until } from '../helpers/until.ts';

const attempt = (rollout: string) => ({ rollout, epoch: 1 });
const holder = { expiresAtMs: Number.MAX_SAFE_INTEGER, sweep: false };

/** A machine whose levels a test changes, with much of every resource at first. */
function machine() {
  const free: Record<Resource, number> = { memory: 100_000, processes: 100_000, handles: 100_000, disk: 100_000 };
  let readings = 0;
  const readLevels = (): readonly Level[] => {
    readings += 1;
    return Object.entries(free).map(([resource, amount]) => ({
      resource: resource as Resource,
      free: amount,
      total: 100_000,
      limit: `the test's ${resource}`,
    }));
  };
  /** Resolves once the levels were read again. */
  const nextReading = async (): Promise<void> => {
    const before = readings;
    await until(() => readings > before);
  };
  return { free, readLevels, nextReading };
}

async function withHost(
  test: (host: ReturnType<typeof machine> & { admission: Admission; slots: Slots }) => Promise<void>,
): Promise<void> {
  const host = machine();
  const admission = createAdmission({ need: needOf(usualTask, 'docker'), readLevels: host.readLevels, everyMs: 5 });
  try {
    await test({ ...host, admission, slots: createSlots(1000, { admission }) });
  } finally {
    admission.close();
  }
}

describe('the admission of a host', () => {
  for (const resource of ['memory', 'processes', 'handles', 'disk'] as const) {
    it(`gives no slot while too little is free: ${resource}`, () =>
      withHost(async ({ free, admission, slots }) => {
        slots.take(attempt('first'), holder);
        assert.equal(slots.isFree(0), true);
        free[resource] = 200;
        await until(() => admission.shortage !== null);
        assert.equal(slots.isFree(0), false);
        assert.equal(admission.shortage?.resource, resource);
        assert.ok(admission.shortage.free <= 200);
        assert.equal(admission.shortage?.limit, `the test's ${resource}`);
      }));
  }

  it('wakes who waits for a slot once enough is free, and not at the amount at which it began to hold back', () =>
    withHost(async ({ free, admission, slots }) => {
      slots.take(attempt('first'), holder);
      free.memory = 3_000;
      await until(() => admission.shortage !== null);
      const untilFree = async (): Promise<void> => {
        while (!slots.isFree(0)) await slots.changed(AbortSignal.timeout(60_000));
      };
      let woken = false;
      const waiting = untilFree().then(() => {
        woken = true;
      });
      free.memory = 3_500;
      await until(() => (admission.shortage?.free ?? 0) > 3_300);
      assert.equal(woken, false);
      assert.ok((admission.shortage?.needed ?? 0) > 3_500);
      free.memory = 5_000;
      await waiting;
    }));

  it('counts rollouts that were placed and use nothing yet', () =>
    withHost(async ({ free, slots, nextReading }) => {
      free.memory = 4_000;
      await nextReading();
      let placed = 0;
      while (placed < 100 && slots.isFree(0)) {
        slots.take(attempt(String(placed)), holder);
        placed += 1;
      }
      assert.ok(placed > 0 && placed < 20, `placed ${placed}`);
    }));

  it('lets a host without rollouts take one, unless its disk is full', () =>
    withHost(async ({ free, admission, slots }) => {
      free.memory = 100;
      await until(() => admission.shortage?.resource === 'memory');
      assert.equal(slots.isFree(0), true);
      assert.equal(slots.isFree(1), false);
      free.memory = 100_000;
      free.disk = 100;
      await until(() => admission.shortage?.resource === 'disk');
      assert.equal(slots.isFree(0), false);
    }));

  it('asks for no more than an eighth of the machine for one rollout, whatever its task may use', () =>
    withHost(async ({ free, admission, slots }) => {
      slots.take(attempt('first'), holder);
      admission.expect(needOf({ memoryMb: 1_000_000, diskMb: 10 }, 'docker'));
      free.memory = 20_000;
      await until(() => admission.admits(1));
      free.memory = 13_000;
      await until(() => !admission.admits(1));
    }));

  it('asks little of its own machine for a rollout with a remote sandbox', () =>
    withHost(async ({ free, admission, slots, nextReading }) => {
      slots.take(attempt('first'), holder);
      free.memory = 1_100;
      free.disk = 1_100;
      free.processes = 520;
      await until(() => !admission.admits(1));
      admission.expect(needOf(usualTask, 'kubernetes'));
      await nextReading();
      await until(() => admission.admits(1));
    }));
});
