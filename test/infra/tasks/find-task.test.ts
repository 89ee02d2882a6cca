import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { FoundTask } from '../../../infra/tasks/find-task.ts';
import { indexById } from '../../../infra/tasks/find-task.ts';

const unexpected = () => assert.fail('expected no call of read or pack');
const task = (id: string, address: string): FoundTask => ({ id, address, read: unexpected, pack: unexpected });

async function* each(...tasks: readonly FoundTask[]): AsyncIterable<FoundTask> {
  yield* tasks;
}

it('indexById maps ids to the addresses that the caller chooses', async () => {
  const index = await indexById('set', each(task('a', 'set#1'), task('b', 'set#2')), ({ address }) => `${address}!`);
  assert.deepEqual(
    [...index],
    [
      ['a', 'set#1!'],
      ['b', 'set#2!'],
    ],
  );
});

it('indexById rejects an id of two tasks and names both', async () => {
  const twice = indexById('set', each(task('a', 'set#1'), task('a', 'set#2')), ({ address }) => address);
  await assert.rejects(twice, {
    type: 'InvalidInput',
    message: /set: expected each id once, got a for set#1 and set#2/,
  });
});
