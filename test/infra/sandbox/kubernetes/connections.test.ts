import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Cluster, openCluster } from '../../../../infra/sandbox/kubernetes/client.ts';
import type { Connection } from '../../../../infra/sandbox/kubernetes/connection.ts';
import { type Connections, createConnections, opensAtOnce } from '../../../../infra/sandbox/kubernetes/connections.ts';
import type { KeptPod } from '../../../../infra/sandbox/kubernetes/pod.ts';
import { until } from '../../../helpers/until.ts';

const hourMs = 3_600_000;

/** A stand-in for the opening of connections, which counts and ends them when a test says so. */
function createOpener(turnMs: number) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<Connection>>();
  const closed: string[] = [];
  const connect = (_: Cluster, { pod }: KeptPod): Promise<Connection> => {
    begun.push(pod);
    const end = Promise.withResolvers<Connection>();
    ends.set(pod, end);
    return end.promise;
  };
  const connectionTo = (pod: string): Connection => ({
    start: () => assert.fail('no task is started'),
    isOver: () => closed.includes(pod),
    close: () => void closed.push(pod),
  });
  const connections = createConnections(() => openCluster('none'), { connectTo: connect, turnMs, pauseMs: 1 });
  return {
    begun,
    closed,
    connections,
    open: (pod: string) => ends.get(pod)?.resolve(connectionTo(pod)),
    fail: (pod: string, why = 'no keeper') => ends.get(pod)?.reject(new Error(why)),
  };
}

const connectAll = (connections: Connections, pods: readonly string[]): readonly Promise<Connection>[] =>
  pods.map((pod) => connections.to({ uid: `uid-${pod}`, pod, root: false, fence: () => null }));

describe('the connections to Pods', () => {
  let root: string;
  const { KUBECONFIG } = process.env;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-connections-'));
    process.env.KUBECONFIG = join(root, 'kubeconfig');
    // The tests send no request to this server.
    const config = {
      clusters: [{ name: 'one', cluster: { server: 'http://127.0.0.1:1', 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'one', user: {} }],
      contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
      'current-context': 'one',
    };
    await writeFile(process.env.KUBECONFIG, JSON.stringify(config));
  });
  after(async () => {
    if (KUBECONFIG === undefined) delete process.env.KUBECONFIG;
    else process.env.KUBECONFIG = KUBECONFIG;
    await rm(root, { recursive: true });
  });

  it('are opened a few at a time, however many are asked for, and each gets its turn', async () => {
    const { begun, connections, open, fail } = createOpener(hourMs);
    const pods = Array.from({ length: 3 * opensAtOnce }, (_, n) => `pod-${n}`);
    const all = Promise.allSettled(connectAll(connections, pods));
    for (let ended = 0; ended < pods.length; ended += 1) {
      await until(() => begun.length === Math.min(pods.length, ended + opensAtOnce));
      // One that fails makes room, too.
      if (ended === 1) fail(`pod-${ended}`);
      else open(`pod-${ended}`);
    }
    const failed = (await all).flatMap(({ status }, index) => (status === 'rejected' ? [index] : []));
    assert.deepEqual(failed, [1]);
  });

  it('do not wait for those that take longer than their turn, which are still opened', async () => {
    const { begun, connections, open } = createOpener(1);
    const slow = Array.from({ length: opensAtOnce }, (_, n) => `slow-${n}`);
    const late = connectAll(connections, slow);
    const [next] = connectAll(connections, ['next']);
    await until(() => begun.includes('next'));
    open('next');
    assert.equal((await next)?.isOver(), false);
    for (const pod of slow) open(pod);
    for (const one of late) assert.equal((await one).isOver(), false);
  });

  it('are tried again where the runtime of a node had no time, and not for ever', async () => {
    const { begun, connections, open, fail } = createOpener(hourMs);
    const [opened, given] = connectAll(connections, ['opened', 'given']);
    const refused = assert.rejects(given ?? assert.fail(), /context deadline exceeded/);
    for (const tries of [1, 2, 3]) {
      await until(() => begun.length === 2 * tries);
      fail('given', 'failed to exec in container: failed to load task: context deadline exceeded');
      if (tries < 3) fail('opened', 'failed to exec in container: failed to load task: context deadline exceeded');
    }
    open('opened');
    assert.equal((await opened)?.isOver(), false);
    await refused;
    assert.equal(begun.length, 6);
  });

  it('are not opened once they are closed, and closed if they were being opened', async () => {
    const { begun, closed, connections, open } = createOpener(hourMs);
    const pods = Array.from({ length: opensAtOnce }, (_, n) => `pod-${n}`);
    const first = connectAll(connections, pods);
    const waiting = connectAll(connections, ['waiting']);
    await until(() => begun.length === opensAtOnce);
    connections.closeAll();
    for (const pod of pods) open(pod);
    await Promise.all(first);
    await assert.rejects(Promise.all(waiting), /closed by this process before it was open/);
    await until(() => closed.length === opensAtOnce);
    assert.ok(!begun.includes('waiting'));
  });

  it('are the same for all callers until they break, and opened again then', async () => {
    const { begun, closed, connections, open } = createOpener(hourMs);
    const [one, same] = connectAll(connections, ['pod', 'pod']);
    await until(() => begun.length === 1);
    open('pod');
    assert.equal(await one, await same);
    closed.push('pod');
    const [again] = connectAll(connections, ['pod']);
    await until(() => begun.length === 2);
    closed.length = 0;
    open('pod');
    assert.notEqual(await again, await one);
  });
});
