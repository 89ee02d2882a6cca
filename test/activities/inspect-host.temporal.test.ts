import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createHostActivities } from '../../activities/control/hosts.ts';
import { claimHost } from '../../infra/hosts/claim.ts';
import { createLease, type HeldLease } from '../../infra/hosts/lease.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { createHosts, type Hosts } from '../../infra/store/hosts.ts';
import { cleanUpQueue, hostQueue } from '../../workflows/contracts/queues.ts';
import { startActivity } from '../helpers/temporal/manual-activity.ts';
import '../helpers/temporal/quiet-runtime.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';

const taskQueue = 'inspections';
const leaseMs = 1_500;

describe('an inspection of a host', () => {
  let root: string;
  let server: TestServer;
  let connection: NativeConnection;
  let hosts: Hosts;
  let inspected: string;
  const running: { readonly worker: Worker; readonly ended: Promise<void> }[] = [];

  const run = async (queue: string, activities: object): Promise<void> => {
    const options = { connection, namespace: server.namespace, taskQueue: queue, activities };
    const worker = await Worker.create(options);
    running.push({ worker, ended: worker.run() });
  };
  /** Claims a name, and renews its record all the time, as a gateway does whose host worker is dead. */
  const claim = async (host: string): Promise<HeldLease & AsyncDisposable> => {
    const lease = createLease({ path: join(root, `${host}.json`), host, hosts, storeIsLocal: true });
    const facts = { version: '1.0.0', capacity: 1, taken: 0, sandboxes: [] };
    const claim = { host, machine: host, lease, leaseMs, watchMs: 1, facts, onWatch: () => undefined };
    await claimHost(hosts, claim, AbortSignal.timeout(30_000));
    const renewing = setInterval(() => void lease.renew(100).catch(() => undefined), 50);
    return Object.assign(lease, { [Symbol.asyncDispose]: async () => clearInterval(renewing) });
  };
  const inspect = async (host: string): Promise<unknown> => {
    inspected = host;
    const retry = { initialMs: 200, maximumMs: 30_000, attempts: 20 };
    const activity = await startActivity(server, { type: 'inspect', taskQueue, heartbeatTimeoutMs: 30_000, retry });
    const { how, result } = await activity.end();
    assert.equal(how, 'completed');
    return (result as { readonly alive: boolean }).alive;
  };

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-inspect-'));
    server = await startTestServer();
    connection = await NativeConnection.connect({ address: server.address });
    hosts = createHosts(createDirectory(root));
    const { inspectHost } = createHostActivities({ client: server.client, hosts, lostAfterMs: 3 * leaseMs });
    await run(taskQueue, { inspect: () => inspectHost({ host: inspected }) });
  });
  after(async () => {
    for (const { worker } of running) worker.shutdown();
    await Promise.all(running.map(({ ended }) => ended));
    await connection.close();
    await server.close();
    await rm(root, { recursive: true, force: true });
  });

  it('finds a host alive whose worker asks for work', async () => {
    await using lease = await claim('busy');
    await run(hostQueue('busy'), { nothing: () => undefined });
    assert.equal(await inspect('busy'), true);
    assert.equal((await hosts.find('busy'))?.record.lost, null);
    assert.notEqual(lease.now().state, 'fenced');
  });

  it('finds a host alive whose worker has no place for more on its main queue, and polls others', async () => {
    await using lease = await claim('full');
    await run(cleanUpQueue('full'), { nothing: () => undefined });
    assert.equal(await inspect('full'), true);
    assert.equal((await hosts.find('full'))?.record.lost, null);
    assert.notEqual(lease.now().state, 'fenced');
  });

  it('declares a host lost that shows no sign of life, and says so only when nothing there may act any more', async () => {
    await using lease = await claim('silent');
    assert.equal(await inspect('silent'), false);
    assert.notEqual(lease.now().state, 'valid');
    const lost = (await hosts.find('silent'))?.record.lost;
    assert.match(lost?.reason ?? '', /no worker has polled its queues for 4.5 s/);
    assert.equal(await inspect('silent'), false);
  });
});
