import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { V1Pod } from '@kubernetes/client-node';
import { openCluster } from '../../../../infra/sandbox/kubernetes/client.ts';
import {
  createPodChanges,
  type FollowedPod,
  type PodChanges,
} from '../../../../infra/sandbox/kubernetes/pod-changes.ts';
import { until } from '../../../helpers/until.ts';

const later = (): number => Date.now() + 60_000;

describe('the changes of Pods', () => {
  /** The watches that are open, and the number of lists so far. */
  const watches = new Set<ServerResponse>();
  let lists = 0;
  let watchStatus = 200;
  const server = createServer((request, response) => {
    const isWatch = new URL(request.url ?? '', 'http://server').searchParams.has('watch');
    response.writeHead(isWatch ? watchStatus : 200, { 'content-type': 'application/json' });
    if (isWatch && watchStatus === 200) {
      watches.add(response);
      response.on('close', () => watches.delete(response));
      response.flushHeaders();
      return;
    }
    if (!isWatch) lists += 1;
    response.end(JSON.stringify({ kind: 'PodList', metadata: { resourceVersion: '1' }, items: [] }));
  });
  let home = '';
  let changes: PodChanges;

  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    home = await mkdtemp(join(tmpdir(), 'temper-changes-'));
    const { port } = server.address() as AddressInfo;
    process.env.KUBECONFIG = join(home, 'kubeconfig');
    const certificate = join(home, 'certificate');
    await writeFile(certificate, 'it is read, and not sent without TLS');
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'one', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'one', user: { 'client-certificate': certificate, 'client-key': certificate } }],
      contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
      'current-context': 'one',
    };
    await writeFile(process.env.KUBECONFIG, JSON.stringify(kubeconfig));
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(home, { recursive: true, force: true });
  });
  afterEach(async () => {
    changes.close();
    await until(() => watches.size === 0);
    watchStatus = 200;
  });

  const open = (): PodChanges => {
    changes = createPodChanges(() => openCluster('sandboxes'));
    return changes;
  };
  const podOf = (name: string, phase: string): V1Pod => ({
    metadata: { name, namespace: 'sandboxes', uid: `uid-${name}`, resourceVersion: phase, labels: changes.labels },
    status: { phase },
  });
  /** Waits for a watch, and takes what its list has told before. */
  const untilWatched = async (...all: readonly FollowedPod[]): Promise<void> => {
    await until(() => watches.size === 1);
    for (const one of all) await one.next(podOf('any', 'Pending'), Date.now());
  };
  const send = (type: string, object: unknown): void => {
    for (const watch of watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  };

  it('reach the followers of a Pod as the watch reports them, the latest one if several came', async () => {
    using one = open().follow('one');
    using other = changes.follow('other');
    const seen = podOf('one', 'Pending');
    await untilWatched(one, other);
    const pending = one.next(seen, later());
    send('ADDED', seen);
    assert.equal((await pending)?.status?.phase, 'Pending');
    send('MODIFIED', podOf('one', 'Starting'));
    send('MODIFIED', podOf('one', 'Running'));
    send('ADDED', podOf('other', 'Running'));
    assert.equal((await other.next(podOf('other', 'Pending'), later()))?.status?.phase, 'Running');
    assert.equal((await one.next(seen, later()))?.status?.phase, 'Running');
    const gone = one.next(seen, later());
    send('DELETED', podOf('one', 'Running'));
    assert.equal(await gone, undefined);
  });

  it('are watched again from a new list when the server has forgotten what the watch has seen', async () => {
    using one = open().follow('one');
    const seen = podOf('one', 'Pending');
    await untilWatched(one);
    const before = lists;
    const missed = one.next(seen, later());
    send('ERROR', { kind: 'Status', code: 410, reason: 'Expired' });
    for (const watch of watches) watch.end();
    assert.equal(await missed, undefined);
    assert.equal(lists, before + 1);
    await untilWatched(one);
    const running = one.next(seen, later());
    send('ADDED', podOf('one', 'Running'));
    assert.equal((await running)?.status?.phase, 'Running');
  });

  it('are read, and watched again later, where the credentials are gone when a watch begins again', async () => {
    using one = open().follow('one');
    const seen = podOf('one', 'Pending');
    await untilWatched(one);
    await rename(join(home, 'certificate'), join(home, 'away'));
    for (const watch of watches) watch.end();
    await until(() => watches.size === 0);
    assert.equal(await one.next(seen, later()), undefined);
    await rename(join(home, 'away'), join(home, 'certificate'));
    using again = changes.follow('again');
    await untilWatched(one, again);
  });

  it('do not keep anyone waiting where there is no watch, nor for a Pod of another process', async () => {
    watchStatus = 403;
    using one = open().follow('one');
    const seen = podOf('one', 'Pending');
    const began = Date.now();
    for (let look = 0; look < 4; look += 1) assert.equal(await one.next(seen, later()), undefined);
    watchStatus = 200;
    await untilWatched(one);
    const foreign = { ...seen, metadata: { ...seen.metadata, labels: {} } };
    for (let look = 0; look < 3; look += 1) assert.equal(await one.next(foreign, later()), undefined);
    assert.ok(Date.now() - began < 40_000, 'expected pauses of at most a second, not of ten');
  });

  it('are not waited for beyond a deadline or an abort', async () => {
    using one = open().follow('one');
    const seen = podOf('one', 'Pending');
    await untilWatched(one);
    assert.equal(await one.next(seen, Date.now() + 20), undefined);
    const stop = new AbortController();
    const waiting = one.next(seen, later(), stop.signal);
    stop.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
  });
});
