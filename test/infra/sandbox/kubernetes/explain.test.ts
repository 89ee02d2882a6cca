import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { V1Pod } from '@kubernetes/client-node';
import { lossOf } from '../../../../infra/sandbox/kubernetes/explain.ts';

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
});
