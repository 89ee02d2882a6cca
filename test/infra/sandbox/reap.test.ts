import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import {
  createSightings,
  decideReaping,
  decideRenewals,
  type Liveness,
  type ReapDecision,
  reap,
} from '../../../infra/sandbox/reap.ts';
import type { SandboxInfo, SandboxPurpose } from '../../../infra/sandbox/sandbox.ts';

const nowMs = 1_000_000_000;
const times = { nowMs, minAgeMs: 60_000 };

interface Changes {
  readonly stack?: string;
  readonly ageMs?: number;
  readonly leftMs?: number;
  readonly purpose?: SandboxPurpose;
}

const info = (name: string, changes: Changes = {}): SandboxInfo => {
  const { stack = 'mine', ageMs = 600_000, leftMs = 600_000, purpose = 'agent' } = changes;
  const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose, expiresAtMs: nowMs + leftMs };
  return { name, kind: 'local', labels, createdAtMs: nowMs - ageMs, running: true };
};
const names = (sandboxes: readonly SandboxInfo[], liveness: Liveness): string[] =>
  decideReaping('mine', sandboxes, () => liveness, times).map(({ name }) => name);

it('removes the sandboxes of a rollout that is over', () => {
  assert.deepEqual(names([info('a'), info('b')], 'over'), ['a', 'b']);
  assert.deepEqual(names([info('a')], 'live'), []);
});

it('keeps the sandbox of a rollout that the server does not know', () => {
  assert.deepEqual(names([info('a')], 'unknown'), []);
});

it('keeps a sandbox whose rollout may not be listed yet', () => {
  assert.deepEqual(names([info('a', { ageMs: 59_999 })], 'over'), []);
});

it('removes an expired sandbox', () => {
  for (const liveness of ['over', 'unknown'] as const) {
    assert.deepEqual(names([info('a', { leftMs: -60_001 })], liveness), ['a']);
    assert.deepEqual(names([info('a', { leftMs: -59_999, ageMs: 1 })], liveness), []);
  }
});

it('keeps the expired sandbox of an agent whose rollout is live, because its next stage may wait', () => {
  assert.deepEqual(names([info('a', { leftMs: -60_001 })], 'live'), []);
});

it('removes an expired evaluation, even of a live rollout', () => {
  assert.deepEqual(names([info('a', { leftMs: -60_001, purpose: 'evaluation' })], 'live'), ['a']);
});

it('never touches another stack, and never a live agent or an unexpired sandbox that is live or unknown', () => {
  const sandbox = fc.record({
    stack: fc.constantFrom('mine', 'other'),
    ageMs: fc.integer({ min: 0, max: 200_000 }),
    leftMs: fc.integer({ min: -200_000, max: 200_000 }),
    liveness: fc.constantFrom<Liveness>('live', 'over', 'unknown'),
  });
  fc.assert(
    fc.property(fc.array(sandbox, { maxLength: 20 }), (cases) => {
      const sandboxes = cases.map((each, index) => info(String(index), each));
      const liveness = ({ name }: SandboxInfo): Liveness => cases[Number(name)]?.liveness ?? 'unknown';
      for (const { name } of decideReaping('mine', sandboxes, liveness, times)) {
        const removed = cases[Number(name)];
        assert.equal(removed?.stack, 'mine');
        const expired = removed.leftMs < -60_000 && removed.liveness !== 'live';
        assert.ok(expired || (removed.liveness === 'over' && removed.ageMs >= times.minAgeMs));
      }
    }),
  );
});

/** A reaper that has seen every sandbox before. */
const seenAll = () => ({ confirm: (decisions: readonly ReapDecision[]) => decisions });

it('removes only what it has found orphaned twice, at least 30 seconds apart and each time in between', () => {
  let nowMs = 0;
  const sightings = createSightings(() => nowMs);
  const look = (afterMs: number, ...sandboxes: readonly string[]): readonly string[] => {
    nowMs += afterMs;
    const orphans = sandboxes.map((name) => info(name));
    const decisions = decideReaping('mine', orphans, () => 'over', times);
    return sightings.confirm(decisions).map(({ name }) => name);
  };
  assert.deepEqual(look(0, 'a', 'b'), []);
  assert.deepEqual(look(29_999, 'a', 'b'), []);
  assert.deepEqual(look(1, 'a'), ['a']);
  // A list lagged, or the rollout was found alive.
  assert.deepEqual(look(60_000, 'a', 'b'), ['a']);
  assert.deepEqual(look(60_000, 'a', 'b'), ['a', 'b']);
});

it('removes a sandbox of an earlier life of its host at once', () => {
  const isVoid = () => true;
  const decisions = decideReaping('mine', [info('a')], () => 'live', { ...times, isVoid });
  assert.deepEqual(createSightings().confirm(decisions), decisions);
});

it('keeps a sandbox alive at its provider whose rollout is live near the end of its time', () => {
  const renewed = (changes: Changes, liveness: Liveness) =>
    decideRenewals('mine', [info('a', changes)], () => liveness, nowMs).map(({ expiresAtMs }) => expiresAtMs - nowMs);
  assert.deepEqual(renewed({ leftMs: 299_999 }, 'live'), [900_000]);
  assert.deepEqual(renewed({ leftMs: -3_600_000 }, 'live'), [900_000]);
  assert.deepEqual(renewed({ leftMs: 300_000 }, 'live'), []);
  assert.deepEqual(renewed({ leftMs: 1 }, 'over'), []);
  assert.deepEqual(renewed({ leftMs: 1 }, 'unknown'), []);
  assert.deepEqual(renewed({ leftMs: 1, purpose: 'evaluation' }, 'live'), []);
  assert.deepEqual(renewed({ leftMs: 1, stack: 'other' }, 'live'), []);
});

it('continues after a sandbox that it can not remove, and then fails', async () => {
  const removed: string[] = [];
  const sandboxes = ['a', 'stuck', 'b'].map((name) => info(name));
  const remove = async ({ name }: ReapDecision): Promise<void> => {
    if (name === 'stuck') throw new Error('busy');
    removed.push(name);
  };
  const livenessOf = async (rollouts: readonly string[]) => new Map(rollouts.map((name) => [name, 'over' as const]));
  const request = { stack: 'mine', sandboxes, livenessOf, minAgeMs: 0, sightings: seenAll(), remove };
  await assert.rejects(reap(request), /expected to remove 3 and to renew 0 sandboxes, got 1 failures; the first: busy/);
  assert.deepEqual(removed, ['a', 'b']);
});

it('counts every rollout as live while the server does not answer, and then fails', async () => {
  const removed: string[] = [];
  const past = { leftMs: -nowMs };
  const sandboxes = [info('agent', past), info('evaluation', { ...past, purpose: 'evaluation' })];
  const livenessOf = async (): Promise<never> => {
    throw new Error('server unreachable');
  };
  const remove = async ({ name }: ReapDecision): Promise<void> => void removed.push(name);
  await assert.rejects(
    reap({ stack: 'mine', sandboxes, livenessOf, minAgeMs: 0, sightings: seenAll(), remove }),
    /server unreachable/,
  );
  assert.deepEqual(removed, ['evaluation']);
});
