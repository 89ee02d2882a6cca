import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { drainHost } from '../../../infra/hosts/orders.ts';
import type { Hosts } from '../../../infra/store/hosts.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { hostFacts, hostOn, longLeaseMs, openHostStores } from '../../helpers/hosts.ts';

const { root, kinds } = await openHostStores();

/** Writes records, and then fails as if the answer of the store had been lost. */
const answerless =
  (hosts: Hosts): Hosts['replace'] =>
  async (...args) => {
    await hosts.replace(...args);
    throw new TemperFailure('StoreUnavailable', 'no answer');
  };

for (const [kind, open] of Object.entries(kinds)) {
  describe(`a host with its record in ${kind}`, () => {
    it('has its name refused to a copy of its home, and its record kept from the gateway of that copy', async () => {
      const hosts = await open();
      const first = await hostOn(root, hosts, 'a', { leaseMs: 3_000 });
      await first.claim();
      const copy = await first.copy();
      assert.equal(await first.claim(), 1);
      const known = await hosts.find('one');
      await assert.rejects(copy.lease.renew(0), {
        type: 'InvalidInput',
        message: /^a copy of this home renewed the record of host one at /,
      });
      assert.deepEqual(await hosts.find('one'), known);
      const onWatch = (): void => void first.lease.renew(0, hostFacts);
      await assert.rejects(copy.claim({ watchMs: 36_000, onWatch }), {
        type: 'InvalidInput',
        message: /host name used twice: one belongs to a machine with a copy of this home, /,
      });
      assert.equal(await first.claim(), 1);
    });

    it('is taken over by a copy of its home when it shows no sign of life, as the next generation', async () => {
      const hosts = await open();
      const first = await hostOn(root, hosts, 'a', { leaseMs: 200 });
      await first.claim();
      const copy = await first.copy();
      await first.lease.renew(0, hostFacts);
      assert.equal(await copy.claim({ leaseMs: longLeaseMs }), 2);
      await first.lease.renew(0, hostFacts);
      assert.deepEqual(first.lease.now(), { state: 'fenced', token: 'one/1' });
      assert.deepEqual(copy.lease.now(), { state: 'valid', token: 'one/2' });
    });

    it('moves with its home: a copy that starts in its place keeps the generation', async () => {
      const hosts = await open();
      const first = await hostOn(root, hosts, 'a');
      await first.claim();
      await drainHost(hosts, 'one', 'a new machine');
      const copy = await first.copy();
      assert.equal(await copy.claim(), 1);
      assert.equal(copy.lease.record?.draining?.reason, 'a new machine');
    });

    it('knows the record that it wrote without an answer, in the same process and in the next', async () => {
      const hosts = await open();
      const silent = { ...hosts, replace: answerless(hosts) };
      const host = await hostOn(root, silent, 'a');
      await assert.rejects(host.claim(), { type: 'StoreUnavailable' });
      const next = await hostOn(root, hosts, 'a', { home: dirname(host.path) });
      assert.equal(await next.claim(), 1);
      await assert.rejects(host.another().renew(0), { type: 'StoreUnavailable' });
      await next.another().renew(0);
      await assert.rejects(host.another().renew(0), { type: 'StoreUnavailable' });
      assert.equal(await next.claim(), 1);
      await next.lease.renew(0);
      assert.equal(next.lease.now().state, 'valid');
    });

    it('keeps its generation when its home has had another name meanwhile, under which it renews that one alone', async () => {
      const hosts = await open();
      const host = await hostOn(root, hosts, 'a');
      await host.claim();
      const renamed = await hostOn(root, hosts, 'a', { home: dirname(host.path), name: 'two' });
      assert.deepEqual(renamed.lease.now(), { state: 'none', token: null });
      const before = await hosts.find('one');
      await renamed.lease.renew(0, hostFacts);
      assert.equal(await renamed.claim(), 1);
      assert.deepEqual(await hosts.find('one'), before);
      const again = await hostOn(root, hosts, 'a', { home: dirname(host.path) });
      assert.equal(await again.claim(), 1);
      assert.deepEqual(again.lease.now(), { state: 'valid', token: 'one/1' });
    });
  });
}
