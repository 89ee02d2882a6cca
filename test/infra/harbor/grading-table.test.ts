import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const read = (grading: string, others: Readonly<Record<string, string>> = {}, head = '') =>
  readHarborTask(
    treeOf({
      'task.toml': `${head}[environment]\ndocker_image = "x"\n[grading]\n${grading}\n`,
      'instruction.md': 'Do it.',
      'tests/test.sh': 'true',
      ...others,
    }),
  );
const same = 'sandbox = "same"';
const logged = { 'grading.json': '{"failToPass": ["a"], "logParser": "tap"}' };

it('reads where the tests of a task run', () => {
  const { gradedIn, keepProcesses, description } = read(
    `${same}\nkeep_processes = true`,
    {},
    'artifacts = ["/srv/a"]\n',
  );
  assert.deepEqual([gradedIn, keepProcesses, description.gradedIn], ['same', true, 'same']);
  const byDefault = read('');
  assert.deepEqual([byDefault.gradedIn, byDefault.keepProcesses], ['fresh', false]);
  assert.ok(!('gradedIn' in byDefault.description), 'the description of other tasks is as it was');
});

it('refuses ways to run the tests that exclude each other', () => {
  const refused: readonly (readonly [string, RegExp, Readonly<Record<string, string>>?])[] = [
    ['sandbox = "snapshot"', /grading\.sandbox: expected "fresh" or "same"/],
    [
      'keep_processes = true',
      /no grading\.keep_processes, since the tests run in a fresh sandbox; add sandbox = "same"/,
    ],
    [`${same}\ntests_in_repository = true`, /tests in the repository are restored in a fresh sandbox only/],
    [`${same}\ncode_as_agent = true`, /code_as_agent protects tests in a fresh sandbox only/],
    [same, /tests that are judged by their log run in a fresh sandbox/, logged],
    ['own_workdir = true', /no grading\.own_workdir, since the code under test keeps the workdir here/, logged],
  ];
  for (const [grading, message, others] of refused)
    assert.throws(() => read(grading, others), { type: 'MalformedTask', message });
});
