import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLease } from '../../../infra/hosts/lease.ts';
import { declareLost, drainHost, resumeHost } from '../../../infra/hosts/orders.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { createHosts } from '../../../infra/store/hosts.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { hostFacts, hostOn, longLeaseMs, openHostStores } from '../../helpers/hosts.ts';
import { until } from '../../helpers/until.ts';

const { root, kinds } = await openHostStores();

for (const [kind, open] of Object.entries(kinds)) {
  describe(`a host on ${kind}`, () => {
    it('claims its name once, and keeps its generation when it starts again', async () => {
      const hosts = await open();
      const host = await hostOn(root, hosts, 'a');
      assert.deepEqual(host.lease.now(), { state: 'none', token: null });
      assert.equal(await host.claim(), 1);
      assert.equal(await host.claim(), 1);
      assert.deepEqual(host.lease.now(), { state: 'valid', token: 'one/1' });
      assert.deepEqual(await hosts.names(), ['one']);
      assert.deepEqual((await hosts.find('one'))?.record.sandboxes, ['local']);
    });

    it('refuses a name that another machine uses', async () => {
      const hosts = await open();
      const [first, second] = [await hostOn(root, hosts, 'a', { leaseMs: 3_000 }), await hostOn(root, hosts, 'b')];
      await first.claim();
      const onWatch = (): void => void first.lease.renew(0, hostFacts);
      await assert.rejects(second.claim({ watchMs: 36_000, onWatch }), {
        type: 'InvalidInput',
        message: /host name used twice: one belongs to another machine \(a\), .*choose another TEMPER_HOST/,
      });
      assert.equal(second.lease.now().state, 'none');
    });

    it('takes over the name of a machine that shows no sign of life, which is fenced from then on', async () => {
      const hosts = await open();
      const [first, second] = [await hostOn(root, hosts, 'a', { leaseMs: 200 }), await hostOn(root, hosts, 'b')];
      await first.claim();
      assert.equal(await second.claim(), 2);
      await first.lease.renew(0, hostFacts);
      assert.deepEqual(first.lease.now(), { state: 'fenced', token: 'one/1' });
      assert.equal(first.another().of('one/1'), 'fenced');
      await assert.rejects(first.lease.valid(), { type: 'HostFenced' });
      assert.equal(second.lease.now().state, 'valid');
    });

    it('starts as the next generation after it was declared lost', async () => {
      const hosts = await open();
      const host = await hostOn(root, hosts, 'a');
      await host.claim();
      await declareLost(hosts, 'one', { generation: 1, reason: 'test' });
      await declareLost(hosts, 'one', { generation: 1, reason: 'again' });
      assert.equal((await hosts.find('one'))?.record.lost?.reason, 'test');
      await host.lease.renew(0, hostFacts);
      assert.equal(host.lease.now().state, 'fenced');
      assert.equal(await host.claim(), 2);
      assert.deepEqual([host.lease.of('one/1'), host.lease.of('one/2')], ['fenced', 'valid']);
      await declareLost(hosts, 'one', { generation: 1, reason: 'too late' });
      assert.equal((await hosts.find('one'))?.record.lost, null);
    });

    it('is not declared lost by one who has not seen its last renewal', async () => {
      const hosts = await open();
      const host = await hostOn(root, hosts, 'a');
      await host.claim();
      const { renewedAt } = (await hosts.find('one'))?.record ?? assert.fail();
      await sleep(2); // Times are in milliseconds.
      await host.lease.renew(0, hostFacts);
      assert.equal((await declareLost(hosts, 'one', { generation: 1, reason: 'test', renewedAt }))?.lost, null);
      assert.equal(host.lease.now().state, 'valid');
    });

    it('keeps an order to drain it over renewals and restarts, until it is withdrawn', async () => {
      const hosts = await open();
      const host = await hostOn(root, hosts, 'a');
      await host.claim();
      await drainHost(hosts, 'one', 'new disks');
      await host.lease.renew(0, { ...hostFacts, taken: 3 });
      assert.equal(host.lease.record?.draining?.reason, 'new disks');
      await host.lease.renew(0, hostFacts);
      await host.claim();
      assert.equal((await hosts.find('one'))?.record.draining?.reason, 'new disks');
      await resumeHost(hosts, 'one');
      await host.another().renew(0);
      await host.lease.renew(0, hostFacts);
      assert.deepEqual([host.lease.record?.draining, (await hosts.find('one'))?.record.draining], [null, null]);
      assert.equal(await drainHost(hosts, 'no-such-host', 'test'), null);
    });

    it('takes no order for a host that was declared lost', async () => {
      const hosts = await open();
      await (await hostOn(root, hosts, 'a')).claim();
      await drainHost(hosts, 'one', 'new disks');
      await declareLost(hosts, 'one', { generation: 1, reason: 'test' });
      assert.equal((await resumeHost(hosts, 'one'))?.draining?.reason, 'new disks');
      assert.equal((await drainHost(hosts, 'one', 'other disks'))?.draining?.reason, 'new disks');
    });
  });
}

describe('a lease', () => {
  it('runs out by itself, and is valid again when it is renewed', async () => {
    const hosts = createHosts(createDirectory(await mkdtemp(join(root, 'home-'))));
    const short = await hostOn(root, hosts, 'a', { leaseMs: 400 });
    await short.claim();
    await until(() => short.lease.now().state === 'expired');
    assert.equal(short.another().of('one/1'), 'expired');
    // A renewal of that one may take longer than it lasts.
    const host = await hostOn(root, createHosts(createDirectory(await mkdtemp(join(root, 'home-')))), 'a');
    await host.claim();
    const file = JSON.parse(await readFile(host.path, 'utf8'));
    await writeFile(host.path, JSON.stringify({ ...file, renewedMs: file.renewedMs - longLeaseMs }));
    await until(() => host.lease.now().state === 'expired');
    const waiting = host.lease.valid();
    await host.another().renew(0);
    await waiting;
  });

  it('is renewed by one process of the host where two find it old, without a request too many', async () => {
    const hosts = createHosts(createDirectory(await mkdtemp(join(root, 'home-'))));
    const host = await hostOn(root, hosts, 'a');
    await host.claim();
    const before = await hosts.find('one');
    await Promise.all([host.lease, host.another(), host.another()].map((lease) => lease.renew(longLeaseMs, hostFacts)));
    assert.deepEqual(await hosts.find('one'), before);
    await Promise.all([host.lease, host.another(), host.another()].map((lease) => lease.renew(0)));
    assert.notEqual((await hosts.find('one'))?.version, before?.version);
    assert.equal(host.another().now().state, 'valid');
  });

  it('of an earlier boot of the machine is over', async () => {
    const hosts = createHosts(createDirectory(await mkdtemp(join(root, 'home-'))));
    const host = await hostOn(root, hosts, 'a');
    await host.claim();
    const file = JSON.parse(await readFile(host.path, 'utf8'));
    await writeFile(host.path, JSON.stringify({ ...file, boot: 'another' }));
    assert.equal(host.another().now().state, 'expired');
  });

  it('outlives a disk that is full below its own home, and no store elsewhere that is', async () => {
    const hosts = createHosts(createDirectory(await mkdtemp(join(root, 'home-'))));
    const host = await hostOn(root, hosts, 'a', { leaseMs: 400 });
    await host.claim();
    const full = { ...hosts, replace: () => Promise.reject(new TemperFailure('DiskFull', 'no space left')) };
    const [here, elsewhere] = [true, false].map((storeIsLocal) =>
      createLease({ path: host.path, host: 'one', hosts: full, storeIsLocal }),
    );
    await until(() => host.lease.now().state === 'expired');
    await until(async () => {
      await here?.renew(0);
      return here?.now().state === 'valid';
    });
    await assert.rejects(async () => elsewhere?.renew(0), { type: 'DiskFull' });
    assert.equal(elsewhere?.now().state, 'expired');
  });

  it('outlives a record that an operator removed by hand', async () => {
    const objects = createDirectory(await mkdtemp(join(root, 'home-')));
    const host = await hostOn(root, createHosts(objects), 'a');
    await host.claim();
    await objects.remove('hosts/one/host.json');
    await host.lease.renew(0, hostFacts);
    assert.equal(host.lease.now().state, 'valid');
    assert.equal((await createHosts(objects).find('one'))?.record.generation, 1);
  });
});
