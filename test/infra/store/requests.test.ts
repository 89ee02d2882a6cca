import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createRequests } from '../../../infra/store/s3/requests.ts';

describe('requests to a store', () => {
  it('are made a limited number at a time, so that none waits for a socket', async () => {
    const requests = createRequests('s3://bucket', 4);
    let [now, most] = [0, 0];
    const call = async (): Promise<void> => {
      now += 1;
      most = Math.max(most, now);
      await turn();
      now -= 1;
    };
    await Promise.all(Array.from({ length: 100 }, () => requests.run('read', call)));
    assert.equal(most, 4);
  });

  it('say what to do about a refusal that only its name explains', async () => {
    const requests = createRequests('s3://bucket', 1);
    const refusals = {
      ExpiredToken: /have expired or are not valid/,
      AuthorizationHeaderMalformed: /TEMPER_STORE_REGION/,
    };
    for (const [name, message] of Object.entries(refusals)) {
      const refused = Object.assign(new Error('refused'), { name, $metadata: { httpStatusCode: 400 } });
      const call = requests.run('read', () => Promise.reject(refused));
      await assert.rejects(call, { type: 'StoreUnavailable', message });
    }
  });

  it('let others run while one that the store did not answer waits for its next try', async () => {
    const requests = createRequests('s3://bucket', 1);
    const order: string[] = [];
    const away = requests.run('read', async (triesBefore) => {
      order.push(`try ${triesBefore}`);
      if (triesBefore === 0) throw new Error('ECONNRESET');
    });
    await Promise.all([away, requests.run('read', async () => void order.push('other'))]);
    assert.deepEqual(order, ['try 0', 'other', 'try 1']);
  });
});
