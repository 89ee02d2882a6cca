import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { V1Pod } from '@kubernetes/client-node';
import { arrivalFailure, lossOf } from '../../../../infra/sandbox/kubernetes/explain.ts';

const failed = (changes: { readonly deleted?: boolean; readonly reason: string }): V1Pod => ({
  metadata: { uid: 'one', ...(changes.deleted === true && { deletionTimestamp: new Date(0) }) },
  status: {
    phase: 'Failed',
    containerStatuses: [
      {
        name: 'sandbox',
        image: 'image',
        imageID: '',
        ready: false,
        restartCount: 0,
        state: { terminated: { exitCode: 143, reason: changes.reason } },
      },
    ],
  },
});

it('tells why a Pod has failed, also one that is being deleted at that moment', () => {
  const lossIn = (pod: V1Pod): string | undefined => lossOf('sandbox', 'one', pod)?.loss;
  assert.equal(lossIn(failed({ reason: 'Error' })), 'unknown');
  assert.equal(lossIn(failed({ reason: 'Error', deleted: true })), 'removed');
  assert.equal(lossIn(failed({ reason: 'OOMKilled', deleted: true })), 'out-of-memory');
  // The container beside the sandbox takes its time to end.
  const { metadata, status } = failed({ reason: 'OOMKilled' });
  assert.equal(lossIn({ ...(metadata && { metadata }), status: { ...status, phase: 'Running' } }), 'out-of-memory');
});

it('tells the loss of a node from a workload that is more urgent and from one that needed its resources', () => {
  const ended = (status: Readonly<V1Pod['status']>): V1Pod => ({
    metadata: { uid: 'one' },
    ...(status && { status: { phase: 'Failed', ...status } }),
  });
  const target = (reason: string) => ({ conditions: [{ type: 'DisruptionTarget', status: 'True', reason }] });
  const cases = [
    ['node-lost', { reason: 'NodeLost' }],
    ['node-lost', { reason: 'NodeShutdown' }],
    // The kubelet of a node that shuts down in order.
    ['node-lost', { reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' }],
    ['node-lost', target('DeletionByTaintManager')],
    ['node-lost', target('DeletionByPodGC')],
    ['preempted', { reason: 'Preempting' }],
    ['preempted', target('PreemptionByScheduler')],
    ['evicted', { reason: 'Evicted', message: 'The node was low on resource: memory.' }],
    ['evicted', target('EvictionByEvictionAPI')],
    ['out-of-disk', { reason: 'Evicted', message: 'Usage of EmptyDir volume "d" exceeds the limit "64Mi".' }],
    ['deadline', { reason: 'DeadlineExceeded' }],
  ] as const;
  for (const [loss, status] of cases)
    assert.equal(lossOf('sandbox', 'one', ended(status))?.loss, loss, JSON.stringify(status));
});

it('blames the image of programs, and not the task, for the container beside an agent that is root', () => {
  const status = (name: string, reason: string, message: string) => {
    const state = { waiting: { reason, message } };
    return { name, image: '', imageID: '', ready: false, restartCount: 0, state };
  };
  const pod: V1Pod = {
    spec: { containers: [], volumes: [{ name: 'programs', image: { reference: 'programs:1' } }] },
    status: {
      initContainerStatuses: [status('witness', 'RunContainerError', 'exec /temper-programs/keeper/env: no such file')],
      containerStatuses: [status('sandbox', 'PodInitializing', '')],
    },
  };
  const failure = arrivalFailure(pod, 'task:1');
  assert.equal(failure?.type, 'SandboxUnavailable');
  assert.match(failure?.message ?? '', /image of programs programs:1/);
});

it('takes no word in the name of an image for the answer of its registry', () => {
  const cases = [
    [
      'ErrImagePull',
      'failed to pull "IMAGE": failed to do request: Head "https://URL": dial tcp: i/o timeout',
      'ImageUnavailable',
    ],
    ['ErrImagePull', 'reading manifest 1 in NAME: received unexpected HTTP status: 500', 'ImageUnavailable'],
    [
      'ErrImagePull',
      'failed to resolve "IMAGE": unexpected status from HEAD request to https://URL: 403 Forbidden',
      'MissingImage',
    ],
    ['ErrImagePull', 'failed to resolve reference "IMAGE": IMAGE: not found', 'MissingImage'],
    ['ImagePullBackOff', 'Back-off pulling image "IMAGE"', undefined],
    [
      'ImagePullBackOff',
      'Back-off pulling image "IMAGE": ErrImagePull: dial tcp: lookup NAME: no such host',
      'ImageUnavailable',
    ],
  ] as const;
  for (const image of [
    'registry.example/acme-403:1',
    'registry.example/forbidden/not-found:1',
    'denied-401:1',
    'plain:1',
  ]) {
    const [name = ''] = image.split(':');
    for (const [reason, text, type] of cases) {
      const message = text
        .replaceAll('IMAGE', image)
        .replaceAll('URL', `registry.example/v2/${name}`)
        .replaceAll('NAME', name);
      const state = { waiting: { reason, message } };
      const waiting = { name: 'sandbox', image, imageID: '', ready: false, restartCount: 0, state };
      assert.equal(arrivalFailure({ status: { containerStatuses: [waiting] } }, image)?.type, type, message);
    }
  }
});

it('reads a long answer of a registry as quickly as a short one', () => {
  const message = `failed to pull "reg.example/a:1": ${'x'.repeat(1_000_000)}: 403 Forbidden`;
  const waiting = { name: 'sandbox', image: '', imageID: '', ready: false, restartCount: 0 };
  const status = { ...waiting, state: { waiting: { reason: 'ErrImagePull', message } } };
  assert.equal(arrivalFailure({ status: { containerStatuses: [status] } }, 'reg.example/a:1')?.type, 'MissingImage');
});
