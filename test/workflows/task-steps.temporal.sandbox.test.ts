import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { RolloutInput } from '../../workflows/contracts/rollout.ts';
import type { TestGateway } from '../helpers/gateway/gateway.ts';
import { type AgentRollouts, startAgentRollouts } from '../helpers/rollouts/agent-rollouts.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { environment, stepsTask } from '../helpers/tasks/task-steps.ts';
import { regrade } from './grade-snapshot-suite.ts';

describe('a task of several steps', () => {
  let rollouts: Rollouts;
  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')] }));
  });
  after(() => rollouts?.close());

  const run = async (
    name: string,
    files: Parameters<typeof stepsTask>[0],
    purpose: RolloutInput['purpose'] = 'evaluation',
  ) => {
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), name, stepsTask(files));
    return rollouts.run(`${name}-oracle`, { task, agent: 'oracle', sandbox: 'local', purpose });
  };
  const rewards = ({ steps = [] }: Awaited<ReturnType<typeof run>>) => steps.map(({ name, reward }) => [name, reward]);

  it('lets a new agent continue with what the one before left, and takes the mean of the rewards', async () => {
    const result = await run('mean', {
      toml: environment,
      steps: {
        first: { solve: 'echo 1 >>log', test: '[ "$(cat log)" = 1 ] && echo 0.5' },
        second: {
          solve: 'cat given >>log',
          test: '[ "$(cat log)" = "$(printf "1\\n2")" ] && echo 1',
          others: { 'workdir/given': '2\n', 'workdir/setup.sh': '[ -f log ] && [ -f given ]' },
        },
      },
    });
    assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', 0.75, 1], JSON.stringify(result));
    assert.deepEqual(rewards(result), [
      ['first', 0.5],
      ['second', 1],
    ]);
    assert.deepEqual(
      result.steps?.map(({ stop, verdict }) => [stop, verdict]),
      [
        ['submitted', 'graded'],
        ['submitted', 'graded'],
      ],
    );
    assert.deepEqual(await rollouts.sandboxes(), []);
    assert.equal((await regrade(rollouts, ['mean-oracle'])).same, 1);
  });

  it('is graded again step by step, each time from all that was there at its end', async () => {
    const result = await run('carried', {
      toml: `${environment}[grading]\nsandbox = "snapshot"\n`,
      steps: {
        first: { solve: 'echo 1 >/tmp/kept', test: '[ "$(cat /tmp/kept)" = 1 ] && echo 1', fields: 'min_reward = 1.0' },
        second: { solve: 'echo 2 >/tmp/kept', test: '[ "$(cat /tmp/kept)" = 2 ] && echo 0.5' },
      },
    });
    assert.equal(result.reward, 0.75, JSON.stringify(result));
    assert.ok(result.steps?.every(({ diff, snapshot }) => diff !== undefined && snapshot?.kind === 'local'));
    assert.equal((await regrade(rollouts, ['carried-oracle'])).same, 1);
  });

  it('ends at a step whose reward is below min_reward, of which training counts those after it as 0', async () => {
    const step = { solve: 'true', test: 'echo 0.4' };
    const files = {
      toml: environment,
      steps: { first: { ...step, test: 'echo 1' }, second: { ...step, fields: 'min_reward = 0.5' }, third: step },
    };
    const [evaluated, trained] = await Promise.all([run('low', files), run('low-trained', files, 'training')]);
    assert.deepEqual([evaluated.outcome, evaluated.reward], ['scored', 0.7], JSON.stringify(evaluated));
    assert.deepEqual([trained.outcome, trained.reward], ['scored', 1.4 / 3], JSON.stringify(trained));
    for (const result of [evaluated, trained]) {
      assert.deepEqual(rewards(result), [
        ['first', 1],
        ['second', 0.4],
      ]);
    }
    const note = 'step third did not begin: step second has a reward of 0.4, below 0.5';
    assert.deepEqual(evaluated.notes, [note]);
    assert.deepEqual(trained.notes, [`${note}; in training it counts as 0, like all steps that do not begin`]);
    assert.equal((await regrade(rollouts, ['low-oracle', 'low-trained-oracle'])).same, 2);
  });

  it('ends at a step of which a score is below min_reward or missing, whatever its reward, and says so', async () => {
    const fields = 'min_reward = { reward = 0.5, style = 0.5 }';
    const first = { solve: 'true', fields, scored: true };
    const rest = { second: { solve: 'true', test: 'echo 0.5', fields: 'min_reward = { style = 1.0 }' } };
    const scored = (scores: string) => ({
      toml: environment,
      steps: { first: { ...first, test: `echo '${scores}'` }, ...rest },
    });
    const [enough, low, missing] = await Promise.all([
      run('enough-style', scored('{"reward": 1, "style": 0.5, "other": 0}')),
      run('low-style', scored('{"reward": 1, "style": 0.25}')),
      run('no-style', scored('{"reward": 1, "Style": 1}')),
    ]);
    assert.deepEqual(
      [enough.outcome, enough.reward, enough.steps?.length],
      ['scored', 0.75, 2],
      JSON.stringify(enough),
    );
    assert.deepEqual([enough.notes, enough.verdict?.scores], [undefined, {}], 'the last step has none after it');
    for (const [{ outcome, reward, steps, verdict, notes }, scores, note] of [
      [low, { style: 0.25 }, 'a score style of 0.25, below 0.5'],
      [missing, {}, 'no score style, which must be at least 0.5'],
    ] as const) {
      assert.deepEqual([outcome, reward, steps?.length], ['scored', 1, 1]);
      assert.deepEqual(verdict?.scores, scores);
      assert.deepEqual(notes, [`step second did not begin: step first has ${note}`]);
    }
    assert.equal((await regrade(rollouts, ['enough-style-oracle', 'low-style-oracle', 'no-style-oracle'])).same, 3);
  });

  it('continues at a reward of min_reward, and takes the last one where the task says so', async () => {
    const step = { solve: 'true', test: 'echo 0.5', fields: 'min_reward = 0.5' };
    const toml = `multi_step_reward_strategy = "final"\n${environment}`;
    const result = await run('final', { toml, steps: { first: step, second: { ...step, test: 'echo 0.25' } } });
    assert.deepEqual([result.outcome, result.reward], ['scored', 0.25], JSON.stringify(result));
    assert.equal(result.steps?.length, 2);
  });

  it('ends at a step whose tests give no reward, or whose set-up the agent made fail, and counts it and those after it as 0', async () => {
    const step = { solve: 'true', test: 'echo 1' };
    const [silent, unprepared] = await Promise.all([
      run('silent', { toml: environment, steps: { first: step, second: { ...step, test: 'true' }, third: step } }),
      run('unprepared', {
        toml: environment,
        steps: {
          first: { ...step, solve: 'touch broken' },
          second: { ...step, others: { 'workdir/setup.sh': '[ ! -e broken ]' } },
          third: step,
        },
      }),
    ]);
    assert.deepEqual([silent.outcome, silent.reward], ['scored', 1 / 3], JSON.stringify(silent));
    assert.deepEqual(
      silent.steps?.map(({ verdict }) => verdict),
      ['graded', 'no-reward', undefined],
    );
    assert.deepEqual([unprepared.outcome, unprepared.reward], ['scored', 1 / 3], JSON.stringify(unprepared));
    assert.deepEqual(
      unprepared.steps?.map(({ stop }) => stop),
      ['submitted', null, null],
    );
    assert.match(
      unprepared.notes?.join() ?? '',
      /step second could not begin: setup\.sh of step-2 failed: exit code 1/,
    );
  });

  it('is flagged for a crash of the agent of any step that has the full reward', async () => {
    const step = { solve: 'true', test: 'echo 1' };
    const result = await run('crash', {
      toml: environment,
      steps: { first: { ...step, solve: 'exit 1' }, last: step },
    });
    assert.deepEqual(
      result.steps?.map(({ stop }) => stop),
      ['crashed', 'submitted'],
      JSON.stringify(result),
    );
    assert.deepEqual(
      result.stepFlags?.filter(({ trick }) => trick === 'crash'),
      [{ trick: 'crash', evidence: 'the agent ended by crashed' }],
    );
  });

  it('is invalid if the set-up of its first step fails', async () => {
    const step = { solve: 'true', test: 'echo 1', others: { 'workdir/setup.sh': 'echo no; exit 3' } };
    const result = await run('broken', { toml: environment, steps: { first: step } });
    assert.deepEqual([result.outcome, result.failure?.type], ['invalid-task', 'SetupFailed'], JSON.stringify(result));
    assert.match(result.failure?.message ?? '', /exit code 3: no/);
  });
});

describe('a task of several steps with an agent that calls the model', () => {
  let rollouts: AgentRollouts;
  const prompts: string[] = [];
  before(async () => {
    rollouts = await startAgentRollouts(say, {
      providerIn: (home) =>
        createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner: createHelperSpawner() }),
      taskRoot: 'tasks',
    });
  });
  after(() => rollouts?.close());

  async function say(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
    const prompt = tokens.decode(promptIds);
    prompts.push(prompt);
    const call = { name: 'bash', arguments: { command: 'echo more >>log' } };
    const text = prompt.includes('<tool_response>') ? 'Done.' : `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${text}<|im_end|>`);
  }

  it('begins another conversation at each step, in one trace, and tells no agent a reward', async () => {
    const files = stepsTask({
      toml: environment,
      steps: {
        first: { solve: 'true', test: '[ "$(wc -l <log)" = 1 ] && echo 0.625' },
        second: { solve: 'true', test: '[ "$(wc -l <log)" = 2 ] && echo 0.875' },
      },
    });
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'two', files);
    const { result, evidence } = await rollouts.roll({ task, agent: 'mini' });
    assert.deepEqual([result.outcome, result.reward], ['scored', 0.75], evidence);
    const told = prompts.map((prompt) => [...prompt.matchAll(/Do (\w+)\./g)].map(([, name]) => name).join());
    assert.deepEqual([...new Set(told)], ['first', 'second'], evidence);
    assert.ok(!prompts.some((prompt) => prompt.includes('0.625')));
    assert.deepEqual([result.trace?.segments, result.trace?.counts?.branches], [2, { main: 2 }], evidence);
  });
});
