import assert from 'node:assert/strict';
import { it } from 'node:test';
import { askedHosts, unreachedHosts } from '../../../../infra/grading/tests/unreached.ts';

it('tells the hosts that tests have reached from those that did not answer and those that the task does not allow', async () => {
  const row = { phase: 'tests', port: 443, requests: 1, bytesIn: 0, bytesOut: 0 } as const;
  const rows = [
    { ...row, host: 'reached.test', decision: 'allowed' },
    { ...row, host: 'gone.test', decision: 'name-not-found' },
    { ...row, host: 'silent.test', decision: 'unreachable' },
    { ...row, host: 'forbidden.test', decision: 'host-refused' },
  ];
  const store = { get: async () => Buffer.from(JSON.stringify(rows)) };
  const log = { digest: 'rows', mediaType: 'application/json', size: 1 };
  const network = { requests: 4, refused: 3, bytesIn: 0, bytesOut: 0, log } as const;
  const unreached = ['gone.test:443', 'silent.test:443'];
  assert.deepEqual(await askedHosts(store, { network }), { reached: ['reached.test:443'], unreached });
  assert.deepEqual(await unreachedHosts(store, { network }), unreached);
  assert.deepEqual(await unreachedHosts(store, { network: { ...network, refused: 0 } }), []);
});
