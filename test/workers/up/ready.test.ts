import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { it } from 'node:test';
import { untilPolled } from '../../../workers/up/ready.ts';

it('a worker counts as started by its own poll, and not by one of the same pid on another machine', async (t) => {
  const { pid } = process;
  const polls = [`${pid}@another#0a1b2c3d`, `1@another-${pid}#0a1b2c3d`, `${pid}@${hostname()}#0a1b2c3d`];
  let asked = 0;
  const describeTaskQueue = async () => {
    asked += 1;
    const lastAccessTime = { seconds: Date.now() / 1000 };
    return { pollers: polls.slice(0, asked).map((identity) => ({ identity, lastAccessTime })) };
  };
  const client = { options: { namespace: 'any' }, connection: { workflowService: { describeTaskQueue } } };
  await untilPolled({ client, queue: 'any', kind: 'activity', pid }, t.signal);
  assert.equal(asked, polls.length);
});
