import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { CoreV1Event, V1Pod } from '@kubernetes/client-node';
import { imageProgressText } from '../../../../infra/sandbox/image.ts';
import { progressOf } from '../../../../infra/sandbox/kubernetes/pod-progress.ts';

const image = 'registry.example/task:1';
const programs = 'registry.example/programs:1';
const second = (at: number): Date => new Date(Date.UTC(2026, 0, 1) + at * 1000);
const event = (at: number, reason: string, message: string, type = 'Normal'): CoreV1Event => ({
  metadata: {},
  involvedObject: {},
  lastTimestamp: second(at),
  reason,
  message,
  type,
});
const pulling = (at: number, name: string) => event(at, 'Pulling', `Pulling image "${name}"`);
const pulled = (at: number, name: string) =>
  event(at, 'Pulled', `Successfully pulled image "${name}" in 2.1s (2.1s including waiting). Image size: 900 bytes.`);

const waiting = { reason: 'ContainerCreating' };
const pod: V1Pod = {
  metadata: { creationTimestamp: second(0) },
  spec: { nodeName: 'node', containers: [] },
  status: {
    conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: second(1) }],
    containerStatuses: [{ name: 'sandbox', image, imageID: '', ready: false, restartCount: 0, state: { waiting } }],
  },
};

it('tells which image the node of a Pod pulls, by its events in the order of their times', () => {
  const since = (at: number) => second(at).toISOString();
  const ofPrograms = [pulling(2, programs)];
  assert.deepEqual(progressOf(pod, image, ofPrograms), { image: programs, doing: 'pulling', since: since(2) });
  const ofTask = [pulling(6, image), pulled(5, programs), ...ofPrograms];
  assert.deepEqual(progressOf(pod, image, ofTask), { image, doing: 'pulling', since: since(6) });
  const starting = { image, doing: 'starting', since: since(1), says: 'ContainerCreating' };
  assert.deepEqual(progressOf(pod, image, [...ofTask, pulled(9, image)]), starting);
  assert.deepEqual(progressOf(pod, image, []), starting);
  const failed = event(8, 'Failed', `Failed to pull image "${image}": the registry is away`, 'Warning');
  assert.deepEqual(progressOf(pod, image, [...ofTask, failed]), {
    ...starting,
    says: `Failed: Failed to pull image "${image}": the registry is away`,
  });
  const again = progressOf(pod, image, [...ofTask, failed, pulling(20, image)]);
  assert.equal(imageProgressText(again, second(60).getTime()), `pulling ${image}, for 40 s`);
});

it('tells that no node has room for a Pod, in the words of the scheduler', () => {
  const message = '0/3 nodes are available: 3 Insufficient memory.';
  const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
  // The Pods of a watch hold their times as texts.
  const metadata = { creationTimestamp: second(0).toISOString() as unknown as Date };
  const progress = progressOf({ metadata, spec: { containers: [] }, status: { conditions } }, image, []);
  assert.equal(imageProgressText(progress, second(20).getTime()), `waiting for a node with room, for 20 s, ${message}`);
});
