import assert from 'node:assert/strict';
import { it } from 'node:test';
import { networkedAsBefore } from '../../activities/control/regrades/read-finished.ts';
import type { NetworkPolicy } from '../../workflows/contracts/network.ts';

const bundle = { digest: '0'.repeat(64), size: 1, mediaType: 'application/x-tar' };
const limits = { agentTimeoutSec: null, evaluationTimeoutSec: null, cpus: 1, memoryMb: 64, diskMb: 64 };
const offline = { id: 'fetch', bundle, image: 'any', workdir: '/workspace', ...limits };
const open: NetworkPolicy = { mode: 'public', hosts: [], ports: [443] };
const listed: NetworkPolicy = { mode: 'allowlist', hosts: ['pypi.test'], ports: [443] };
const used = { network: { requests: 0, refused: 0, bytesIn: 0, bytesOut: 0, log: bundle } };

it('a regrade gives tests the network that they had, whatever the operator allows by now', () => {
  const optional = { ...offline, testNetwork: { ...open, optional: true } } as const;
  assert.deepEqual(networkedAsBefore({}, optional), offline);
  assert.deepEqual(networkedAsBefore(used, optional), { ...offline, testNetwork: open });
  // So it is with tests that download, which the user may have let run without a network.
  const needed = { ...offline, testNetwork: { ...open, neededFor: 'tests/test.sh:1: npm ci' } } as const;
  assert.deepEqual(networkedAsBefore({}, needed), offline);
  assert.deepEqual(networkedAsBefore(used, needed), { ...offline, testNetwork: open });
  // Nothing is known of a rollout whose evaluation failed.
  assert.deepEqual(networkedAsBefore(null, optional), optional);
  for (const verdict of [{}, used, null]) {
    assert.deepEqual(networkedAsBefore(verdict, { ...offline, testNetwork: listed }), {
      ...offline,
      testNetwork: listed,
    });
    assert.deepEqual(networkedAsBefore(verdict, offline), offline);
  }
});
