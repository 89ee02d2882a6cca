import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { graderVersion } from '../../../infra/grading/version.ts';
import type { FoundTask } from '../../../infra/tasks/find-task.ts';
import { createTasks } from '../../../infra/tasks/tasks.ts';
import { type RolloutRow, rowWithoutResult } from '../../../workers/cli/commands/rollout/rollout-row.ts';
import {
  type Validation,
  type ValidationOptions,
  validateTasks,
  validationKey,
  whyInvalid,
} from '../../../workers/cli/commands/tasks/validate-tasks.ts';
import type { Outcome } from '../../../workflows/contracts/outcome.ts';
import { type Rollouts, startRollouts } from '../../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { environment, stepsTask } from '../../helpers/tasks/task-steps.ts';
import { until } from '../../helpers/until.ts';

const row = (outcome: Outcome): RolloutRow =>
  rowWithoutResult({ rollout: 'r', task: 'task', agent: 'oracle', outcome, failure: null });

const rows = (...rewards: readonly number[]): readonly RolloutRow[] =>
  rewards.map((reward) => ({ ...row('scored'), reward, verdict: 'graded' }));

describe('whyInvalid', () => {
  it('is null if the solution always scores 1 and doing nothing always scores 0', () => {
    assert.equal(whyInvalid(rows(1, 1), rows(0, 0)), null);
  });

  it('names the first unexpected score, and says whether the tests are flaky', () => {
    assert.equal(whyInvalid(rows(0), rows(0)), 'the reference solution: reward 0, graded');
    assert.equal(whyInvalid(rows(1), rows(0.5)), 'doing nothing: reward 0.5, graded');
    assert.equal(
      whyInvalid(rows(1, 0, 1), rows(0)),
      'the reference solution: reward 0, graded; 2 of its 3 rollouts score 1: the tests are flaky',
    );
    const skipped = rows(1).map((one) => ({ ...one, flags: ['tests', 'skipped-tests'] as const }));
    assert.match(
      whyInvalid(skipped, rows(0)) ?? '',
      /^the reference solution: flagged as skipped-tests\. The tests wrote/,
    );
    const lost = row('infra');
    assert.equal(whyInvalid([...rows(1), lost], rows(0)), 'the reference solution: infra');
  });
});

it('validationKey is the same only for the same task, image, kind of sandbox, network and grader', () => {
  const local = { sandbox: 'local' } as const;
  const task = { bundle: { digest: 'a', size: 1, mediaType: 'application/x-tar' }, image: 'i' };
  const keys = [
    validationKey(task, local),
    validationKey({ ...task, image: 'j' }, local),
    validationKey({ ...task, bundle: { ...task.bundle, digest: 'b' } }, local),
    validationKey(task, { sandbox: 'docker' }),
    validationKey(task, { ...local, offlineTests: true }),
    validationKey(task, local, 'another-grader'),
  ];
  assert.equal(new Set(keys).size, 6);
  assert.equal(validationKey(task, local, graderVersion), keys[0]);
});

describe('validateTasks', () => {
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

  function scan(set: string): AsyncIterable<FoundTask> {
    const dataSets = { directory: join(rollouts.home, 'cache'), offline: true };
    return createTasks({ store: rollouts.store, roots: [set], dataSets }).scan(`harbor:${set}`);
  }

  async function validate(options: Partial<ValidationOptions> = {}, signal = new AbortController().signal, set = root) {
    const all: Validation[] = [];
    const finish = (one: Validation): void => void all.push(one);
    await validateTasks(
      rollouts.client,
      scan(set),
      { sandbox: 'local', concurrency: 2, repeat: 1, again: false, finish, ...options },
      signal,
    );
    return all.sort((one, other) => one.task.localeCompare(other.task));
  }

  it('says for each task whether only its solution solves it, and why not', async () => {
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
    assert.ok(all.every(({ givingUp }) => givingUp === null));
    const [good, ...bad] = all.map(({ why }) => why ?? '');
    assert.equal(good, '');
    assert.match(bad[0] ?? '', /^doing nothing: reward 1, graded, the tests wrote 1/);
    assert.match(bad[1] ?? '', /^MalformedTask: .*version/);
    assert.match(bad[2] ?? '', /^the reference solution: reward 0, graded, the tests wrote 0/);
  });

  it('reuses the scores of an earlier validation unless it is asked to repeat all', async () => {
    const rolled = async (count: number): Promise<boolean> =>
      (await rollouts.client.workflow.count("WorkflowType='rollout'")).count === count;
    // Three tasks could be read, and each has two rollouts.
    await until(() => rolled(6));
    const reused = await validate();
    assert.deepEqual(
      reused.map(({ valid }) => valid),
      [true, false, false, false],
    );
    assert.ok(await rolled(6));
    await validate({ again: true });
    await until(() => rolled(12));
  });

  it('runs several rollouts of each agent if asked to', async () => {
    const [good] = await validate({ repeat: 2 });
    const ids = [...(good?.oracle ?? []), ...(good?.nop ?? [])].map(({ rollout }) => rollout);
    assert.equal(new Set(ids).size, 4, ids.join(' '));
    assert.equal(good?.valid, true);
  });

  it('cancels its rollouts when it is interrupted, and continues later', async () => {
    const abort = new AbortController();
    const finished: Validation[] = [];
    const interrupted = validate(
      {
        again: true,
        concurrency: 1,
        finish: (one) => {
          finished.push(one);
          abort.abort();
        },
      },
      abort.signal,
    );
    await interrupted;
    assert.equal(finished.length, 1);
    assert.deepEqual(await rollouts.sandboxes(), []);
    assert.equal((await validate()).length, 4);
  });

  it('says of a valid task that it rewards giving up, if a step may end it', async () => {
    const set = join(rollouts.home, 'stepped');
    const first = { solve: 'echo 1 >done', test: '[ -e done ] && echo 1 || echo 0', fields: 'min_reward = 0.5' };
    await writeHarborTask(set, 'steps', stepsTask({ toml: environment, steps: { first, second: first } }));
    const [found] = await validate({}, undefined, set);
    assert.deepEqual([found?.valid, found?.why], [true, null]);
    assert.match(found?.givingUp ?? '', /^ending at step first with a reward just below 0\.5 /);
  });
});
