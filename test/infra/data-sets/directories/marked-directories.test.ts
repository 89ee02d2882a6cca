import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createDataSetFixture, failure } from '../../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../../helpers/tasks/terminal-bench-task.ts';

it('finds the tasks of a set that are in groups, and names two of the same id', async () => {
  await using fixture = await createDataSetFixture();
  const write = async (place: string): Promise<void> => {
    for (const [path, text] of Object.entries(terminalBench)) await fixture.write(`grouped/${place}/${path}`, text);
  };
  await write('easy/files/first');
  await write('hard/second');
  const set = `terminal-bench:${fixture.root}/grouped`;
  assert.deepEqual(await fixture.tasks.list(set), [`${set}#first`, `${set}#second`]);
  // Tasks beside groups hide none of those in the groups.
  await write('single');
  const again = await fixture.tasksWith({ offline: true }).list(set);
  assert.deepEqual(again, [`${set}#first`, `${set}#second`, `${set}#single`]);
  await write('hard/first');
  await assert.rejects(
    fixture.tasksWith({ offline: true }).list(set),
    failure('MalformedTask', /expected a unique id, got first/),
  );
});
