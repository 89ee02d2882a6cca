import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { V1Pod } from '@kubernetes/client-node';
import { type AwaitedPod, type RemovalTimes, untilGone } from '../../../../infra/sandbox/kubernetes/await-pod.ts';

const node = 'busy';
const lookMs = 10_000;

interface Deleted {
  /** The time after which the Pod is gone. */
  readonly goneMs: number;
  /** Whether each look finds the Pod changed. */
  readonly changes?: boolean;
  readonly onLook?: () => void;
}

/** A deleted Pod, by a clock that each look at it puts forward. */
function deletedPod(t: TestContext, { goneMs, changes = false, onLook }: Deleted): AwaitedPod {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const endMs = Date.now() + goneMs;
  let version = 1;
  const now = (): V1Pod => ({
    metadata: { name: 'one', uid: 'uid', resourceVersion: String(version) },
    spec: { nodeName: node, containers: [] },
  });
  return {
    pod: now(),
    followed: {
      next: async () => {
        t.mock.timers.tick(lookMs);
        if (changes) version += 1;
        onLook?.();
        return undefined;
      },
      [Symbol.dispose]: () => undefined,
    },
    read: async () => (Date.now() < endMs ? now() : undefined),
  };
}

/** Notes at every look that another Pod of a node is gone. */
const others = (removals: RemovalTimes, name: string) => () => {
  removals.set(name, Date.now());
};

describe('the wait for a deleted Pod', () => {
  it('continues while its node removes others', async (t) => {
    const removals: RemovalTimes = new Map();
    await untilGone(deletedPod(t, { goneMs: 200_000, onLook: others(removals, node) }), 'one', removals);
    assert.equal(removals.get(node), Date.now());
  });

  it('continues while the Pod changes', async (t) => {
    await untilGone(deletedPod(t, { goneMs: 200_000, changes: true }), 'one', new Map());
  });

  it('ends after a minute without a sign of its node, whatever other nodes do', async (t) => {
    const removals: RemovalTimes = new Map();
    const deleted = deletedPod(t, { goneMs: 200_000, onLook: others(removals, 'other') });
    const waiting = untilGone(deleted, 'one', removals);
    await assert.rejects(waiting, {
      type: 'SandboxUnavailable',
      message: /still there after 70 s: its node may be lost/,
    });
  });

  it('ends after five minutes, whatever the node does', async (t) => {
    const removals: RemovalTimes = new Map();
    const deleted = deletedPod(t, { goneMs: 900_000, onLook: others(removals, node) });
    const waiting = untilGone(deleted, 'one', removals);
    await assert.rejects(waiting, { type: 'SandboxUnavailable', message: /still there after 310 s/ });
  });
});
