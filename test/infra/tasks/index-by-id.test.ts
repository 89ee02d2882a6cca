import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { FoundTask } from '../../../infra/tasks/find-task.ts';
import { indexById } from '../../../infra/tasks/index-by-id.ts';

const unasked = () => assert.fail('expected nobody to read or pack it');
const task = (id: string, address: string): FoundTask => ({ id, address, read: unasked, pack: unasked });

async function* each(...tasks: readonly FoundTask[]): AsyncIterable<FoundTask> {
  yield* tasks;
}

it('tasks are found by their ids, under the addresses that are asked for', async () => {
  const index = await indexById('set', each(task('a', 'set#1'), task('b', 'set#2')), ({ address }) => `${address}!`);
  assert.deepEqual(
    [...index],
    [
      ['a', 'set#1!'],
      ['b', 'set#2!'],
    ],
  );
});

it('an id that two tasks have is refused with both', async () => {
  const twice = indexById('set', each(task('a', 'set#1'), task('a', 'set#2')), ({ address }) => address);
  await assert.rejects(twice, {
    type: 'InvalidInput',
    message: /set: expected each id once, got a for set#1 and set#2/,
  });
});
