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
