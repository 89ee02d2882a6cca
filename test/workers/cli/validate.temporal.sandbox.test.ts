import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { graderVersion } from '../../../infra/grading/version.ts';
import type { FoundTask } from '../../../infra/tasks/find-task.ts';
import { createTasks } from '../../../infra/tasks/tasks.ts';
import { type RolloutRow, rowWithout } from '../../../workers/cli/commands/rollout/row.ts';
import {
  complaint,
  type Validation,
  type ValidationOptions,
  validateTasks,
  validationKey,
} from '../../../workers/cli/commands/tasks/validation.ts';
import { type Rollouts, startRollouts } from '../../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { until } from '../../helpers/until.ts';

const rows = (...rewards: readonly number[]): readonly RolloutRow[] =>
  rewards.map((reward) => ({ ...rowWithout('r', 'task', 'oracle', 'scored', null), reward, verdict: 'graded' }));

describe('what is wrong with a task', () => {
  it('is nothing where the solution always scores 1 and doing nothing always 0', () => {
    assert.equal(complaint(rows(1, 1), rows(0, 0)), null);
  });

  it('is the first score that is another, and whether its tests are flaky', () => {
    assert.equal(complaint(rows(0), rows(0)), 'the reference solution: reward 0, graded');
    assert.equal(complaint(rows(1), rows(0.5)), 'doing nothing: reward 0.5, graded');
    assert.equal(
      complaint(rows(1, 0, 1), rows(0)),
      'the reference solution: reward 0, graded; 2 of its 3 rollouts score 1: the tests are flaky',
    );
    const lost = { ...rowWithout('r', 'task', 'oracle', 'infra', null), reward: null };
    assert.equal(complaint([...rows(1), lost], rows(0)), 'the reference solution: infra');
  });
});

it('an earlier score counts for the same task, image, kind of sandbox and grader', () => {
  const task = { bundle: { digest: 'a', size: 1, mediaType: 'application/x-tar' }, image: 'i' };
  const keys = [
    validationKey(task, 'local'),
    validationKey({ ...task, image: 'j' }, 'local'),
    validationKey({ ...task, bundle: { ...task.bundle, digest: 'b' } }, 'local'),
    validationKey(task, 'docker'),
    validationKey(task, 'local', 'another-grader'),
  ];
  assert.equal(new Set(keys).size, 5);
  assert.equal(validationKey(task, 'local', graderVersion), keys[0]);
});

describe('the validation of a task set', () => {
  let rollouts: Rollouts;
  let root: string;

  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')] }));
    root = join(rollouts.home, 'tasks');
    await writeHarborTask(root, 'good', {});
    await writeHarborTask(root, 'loose', { workspace: { 'answer.txt': 'right\n' } });
    await writeHarborTask(root, 'malformed', { toml: 'version = 1\n' });
    await writeHarborTask(root, 'unsolved', { solve: 'echo almost > /workspace/answer.txt' });
  });
  after(() => rollouts?.close());

  function scan(): AsyncIterable<FoundTask> {
    const dataSets = { directory: join(rollouts.home, 'cache'), offline: true };
    return createTasks({ store: rollouts.store, roots: [root], dataSets }).scan(`harbor:${root}`);
  }

  async function validate(options: Partial<ValidationOptions> = {}, signal = new AbortController().signal) {
    const all: Validation[] = [];
    const finish = (one: Validation): void => void all.push(one);
    await validateTasks(
      rollouts.client,
      scan(),
      { sandbox: 'local', concurrency: 2, repeat: 1, again: false, finish, ...options },
      signal,
    );
    return all.sort((one, other) => one.task.localeCompare(other.task));
  }

  it('says of each task whether its solution solves it and nothing less does, and why not', async () => {
    const all = await validate();
    assert.deepEqual(
      all.map(({ task, valid, oracle, nop }) => [
        task,
        valid,
        oracle.map(({ reward }) => reward),
        nop.map(({ reward }) => reward),
      ]),
      [
        ['good', true, [1], [0]],
        ['loose', false, [1], [1]],
        ['malformed', false, [], []],
        ['unsolved', false, [0], [0]],
      ],
    );
    const [good, ...bad] = all.map(({ why }) => why ?? '');
    assert.equal(good, '');
    assert.match(bad[0] ?? '', /^doing nothing: reward 1, graded, the tests wrote 1/);
    assert.match(bad[1] ?? '', /^MalformedTask: .*version/);
    assert.match(bad[2] ?? '', /^the reference solution: reward 0, graded, the tests wrote 0/);
  });

  it('takes the scores of an earlier one, unless it is to do all again', async () => {
    const rolled = async (count: number): Promise<boolean> =>
      (await rollouts.client.workflow.count("WorkflowType='rollout'")).count === count;
    // Three tasks that can be read, of which each had two.
    await until(() => rolled(6));
    const taken = await validate();
    assert.deepEqual(
      taken.map(({ valid }) => valid),
      [true, false, false, false],
    );
    assert.ok(await rolled(6));
    await validate({ again: true });
    await until(() => rolled(12));
  });

  it('asks each several times, where that is wanted', async () => {
    const [good] = await validate({ repeat: 2 });
    const ids = [...(good?.oracle ?? []), ...(good?.nop ?? [])].map(({ rollout }) => rollout);
    assert.equal(new Set(ids).size, 4, ids.join(' '));
    assert.equal(good?.valid, true);
  });

  it('ends what it began when it is interrupted, and goes on later', async () => {
    const abort = new AbortController();
    const told: Validation[] = [];
    const interrupted = validate(
      {
        again: true,
        concurrency: 1,
        finish: (one) => {
          told.push(one);
          abort.abort();
        },
      },
      abort.signal,
    );
    await interrupted;
    assert.equal(told.length, 1);
    assert.deepEqual(await rollouts.sandboxes(), []);
    assert.equal((await validate()).length, 4);
  });
});
