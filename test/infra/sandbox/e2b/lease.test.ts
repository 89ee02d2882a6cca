import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createLease, leaseAheadMs } from '../../../../infra/sandbox/e2b/lease.ts';

const leaseOf = (leftMs: number, isThere = true) => {
  const renewals: number[] = [];
  const lease = createLease({
    endMs: Date.now() + leftMs,
    renew: async (ms) => {
      renewals.push(ms);
      return isThere;
    },
  });
  return { lease, renewals };
};

it('renews a lease that ends soon, once for all who use the sandbox', async () => {
  const { lease, renewals } = leaseOf(leaseAheadMs / 4);
  await Promise.all([lease.keep(), lease.keep()]);
  await lease.keep();
  assert.deepEqual(renewals, [leaseAheadMs]);
  assert.ok(lease.endMs > Date.now() + leaseAheadMs / 2);
});

it('leaves a lease alone that lasts', async () => {
  const { lease, renewals } = leaseOf(leaseAheadMs);
  await lease.keep();
  assert.deepEqual(renewals, []);
});

it('leaves the end of a lease as it was whose sandbox is gone', async () => {
  const { lease } = leaseOf(1_000, false);
  const { endMs } = lease;
  await lease.keep();
  assert.equal(lease.endMs, endMs);
});
