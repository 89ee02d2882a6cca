import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { endOf } from '../../workers/worker-group.ts';

const never = (): Promise<void> => new Promise(() => {});

describe('the end of a worker', () => {
  it('is an error when it failed and does not end, as when the server refuses its polls', async () => {
    const stuck = endOf({ run: never, getState: () => 'FAILED' }, 50);
    await assert.rejects(stuck, /a worker failed and did not end/);
  });

  it('is that of its run in all other cases', async () => {
    await endOf({ run: async () => {}, getState: () => 'STOPPED' }, 50);
    const failure = new Error('unauthorized');
    const failed = endOf({ run: () => Promise.reject(failure), getState: () => 'FAILED' }, 50);
    await assert.rejects(failed, failure);
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, 200);
    await endOf({ run: () => promise, getState: () => 'RUNNING' }, 50);
  });
});
