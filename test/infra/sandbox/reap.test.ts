import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { decideReaping, type Liveness, type ReapDecision, reap } from '../../../infra/sandbox/reap.ts';
import type { SandboxInfo } from '../../../infra/sandbox/sandbox.ts';

const nowMs = 1_000_000_000;
const times = { nowMs, minAgeMs: 60_000 };

const info = (name: string, changes: { stack?: string; ageMs?: number; leftMs?: number } = {}): SandboxInfo => {
  const { stack = 'mine', ageMs = 600_000, leftMs = 600_000 } = changes;
  const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent' as const, expiresAtMs: nowMs + leftMs };
  return { name, kind: 'local', labels, createdAtMs: nowMs - ageMs, running: true };
};
const names = (sandboxes: readonly SandboxInfo[], liveness: Liveness): string[] =>
  decideReaping('mine', sandboxes, () => liveness, times).map(({ name }) => name);

it('removes the sandboxes of a rollout that is over', () => {
  assert.deepEqual(names([info('a'), info('b')], 'over'), ['a', 'b']);
  assert.deepEqual(names([info('a')], 'live'), []);
});

it('keeps the sandbox of a rollout that the server could not tell about', () => {
  assert.deepEqual(names([info('a')], 'unknown'), []);
});

it('keeps a sandbox whose rollout may not be listed yet', () => {
  assert.deepEqual(names([info('a', { ageMs: 59_999 })], 'over'), []);
});

it('removes an expired sandbox, even of a live rollout', () => {
  for (const liveness of ['live', 'over', 'unknown'] as const) {
    assert.deepEqual(names([info('a', { leftMs: -60_001 })], liveness), ['a']);
    assert.deepEqual(names([info('a', { leftMs: -59_999, ageMs: 1 })], liveness), []);
  }
});

it('never touches another stack, and never an unexpired sandbox that is live or unknown', () => {
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
        assert.ok(removed.leftMs < -60_000 || (removed.liveness === 'over' && removed.ageMs >= times.minAgeMs));
      }
    }),
  );
});

it('continues after a sandbox that it can not remove, and then fails', async () => {
  const removed: string[] = [];
  const sandboxes = ['a', 'stuck', 'b', 'unanswered'].map((name) => info(name));
  const remove = async ({ name }: ReapDecision): Promise<void> => {
    if (name === 'stuck') throw new Error('busy');
    removed.push(name);
  };
  const livenessOf = async ({ name }: SandboxInfo): Promise<Liveness> => {
    if (name === 'unanswered') throw new Error('server unreachable');
    return 'over';
  };
  const request = { stack: 'mine', sandboxes, livenessOf, minAgeMs: 0, remove };
  await assert.rejects(reap(request, AbortSignal.timeout(1_000)), /expected to remove 4 sandboxes|failures/);
  assert.deepEqual(
    removed.filter((name) => name !== 'unanswered'),
    ['a', 'b'],
  );
});
