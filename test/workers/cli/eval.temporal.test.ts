import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sweepStatusQuery } from '../../../workflows/contracts/messages.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import { cliOn } from '../../helpers/cli.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

describe('temper eval', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;

  before(async () => {
    stack = await startScriptedStack();
    temper = cliOn(stack.home, stack.server);
  });
  after(async () => {
    await stack?.close();
  });

  it('waits for the sweep and prints its rates, tasks and costs', async () => {
    stack.script = { reward: (id) => (/rollout-[01]-/.test(id) ? 1 : 0) };
    const { code, stdout, stderr } = await temper.run(
      'eval',
      '--tasks',
      'generated:test/1',
      '--count',
      '4',
      '--attempts',
      '2',
      '--weight',
      '3',
      '--id',
      'before',
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^scored +8 +32 +16 +8\.0 s +local /m);
    assert.match(stdout, /^before: 4 tasks of generated:test\/1, 2 attempts each, mini, policy version 0$/m);
    assert.match(stdout, /^pass@1 +0\.500 {2}\(95 %: 0\.068 to 0\.932, 4 tasks\)$/m);
    assert.match(stdout, /^pass@2 +0\.500 {2}\(95 %: 0\.068 to 0\.932, 4 tasks\)$/m);
    assert.match(stdout, /^counted +8 of 8 attempts$/m);
    assert.match(stdout, /^generated:test\/1#1 +2 of 2 +1\.00 +0 +2 +4 /m);
  });

  it('is listed with its tasks, and its id is not given twice', async () => {
    const listed = await until(async () => {
      const { stdout } = await temper.run('eval', 'list');
      return /completed/.test(stdout) ? stdout : null;
    });
    assert.match(listed, /^before +completed +generated:test\/1 /m);
    const again = await temper.run('eval', '--tasks', 'generated:test/1', '--count', '1', '--id', 'before');
    assert.deepEqual([again.code, /before is running or has ended; .* such as before-2/.test(again.stderr)], [1, true]);
  });

  it('pauses at its budget, and `temper budget` raises it', async () => {
    stack.script = { reward: () => 1 };
    const args = '--tasks generated:test/1 --count 2 --budget rollouts=1 --id frugal --detach'.split(' ');
    const { code, stderr } = await temper.run('eval', ...args);
    assert.equal(code, 0, stderr);
    const handle = stack.server.client.workflow.getHandle('frugal');
    await until(async () => (await handle.query(sweepStatusQuery)).phase === 'paused');
    assert.match(
      (await temper.run('show', 'frugal')).stdout,
      /^paused: the budget is used up: 1 of 1 rollouts; raise/m,
    );
    const raised = await temper.run('budget', 'frugal', 'rollouts=2');
    assert.match(raised.stdout, /^rollouts +[12] +2$/m, raised.stderr);
    assert.equal((await handle.result()).counted, 2);
  });

  it('prints the result as JSON if asked', async () => {
    stack.script = { reward: (id) => (/rollout-0-/.test(id) ? 0 : 1) };
    const { code, stdout } = await temper.run(
      'eval',
      '--tasks',
      'generated:test/1',
      '--count',
      '4',
      '--id',
      'after',
      '--json',
    );
    const { id, counted, passAt1 } = JSON.parse(stdout);
    assert.deepEqual([code, id, counted, passAt1.mean], [0, 'after', 4, 0.75]);
  });

  it('shows a sweep that has ended, also as JSON, and `temper show` prints the same', async () => {
    const shown = await temper.run('eval', 'show', 'before');
    assert.match(shown.stdout, /^pass@1 +0\.500/m);
    assert.equal((await temper.run('show', 'before')).stdout, shown.stdout);
    const { input, taskScores } = JSON.parse((await temper.run('eval', 'show', 'before', '--json')).stdout);
    assert.deepEqual([input.attempts, input.weight, taskScores.length], [2, 3, 4]);
    const { code, stderr } = await temper.run('eval', 'show', 'nothing');
    assert.deepEqual([code, /no workflow with the id "nothing"/.test(stderr)], [1, true], stderr);
  });

  it('compares two sweeps by task and names the tasks whose pass rate changed', async () => {
    const { code, stdout } = await temper.run('eval', 'compare', 'before', 'after');
    assert.equal(code, 0);
    assert.match(stdout, /^before → after, on the 4 tasks that both counted$/m);
    assert.match(stdout, /^evaluated +policy version 0 → policy version 0$/m);
    assert.match(stdout, /^pass rate +0\.500 → 0\.750$/m);
    assert.match(stdout, /^p +0\.5556 {2}\(permutation test within the tasks, exact\)$/m);
    assert.match(stdout, /^flipped +2 better, 1 worse; 2\.3 expected by chance$/m);
    assert.match(stdout, /^generated:test\/1#0 +1\.00 +0\.00 +worse$/m);
    const { before, comparisons } = JSON.parse(
      (await temper.run('eval', 'compare', 'before', 'after', '--json')).stdout,
    );
    const [compared] = comparisons;
    const first = { run: null, policyVersion: 0, upstream: null };
    assert.deepEqual([before.sweep, before.evaluated, before.passAt], ['before', first, 1]);
    assert.deepEqual([compared.after.sweep, compared.after.evaluated, comparisons.length], ['after', first, 1]);
    assert.deepEqual([compared.passRate.difference, compared.passRate.adjustedPValue.toFixed(4)], [0.25, '0.5556']);
  });

  it('compares several sweeps with a first one, and adjusts p for their number', async () => {
    const { code, stdout, stderr } = await temper.run('eval', 'compare', 'before', 'after', 'frugal');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^before \(policy version 0\) → 2 sweeps, each on the tasks that both counted$/m);
    assert.match(stdout, /^after +policy version 0 +4 +0\.500 → 0\.750 /m);
    assert.match(stdout, /^frugal +policy version 0 /m);
    assert.match(stdout, /adjusted for 2 comparisons \(Holm\)$/m);
    const { code: failed, stderr: said } = await temper.run('eval', 'compare', 'before', 'after', 'nothing');
    assert.deepEqual([failed, /no workflow with the id "nothing"/.test(said)], [1, true], said);
  });

  it('counts and lists the rollouts that are flagged as suspected tricks', async () => {
    stack.script = {
      reward: () => 1,
      flags: (id) =>
        /rollout-[01]-/.test(id) ? ['tests', ...(id.includes('rollout-0-') ? ['exit' as const] : [])] : [],
    };
    const args = ['eval', '--tasks', 'generated:test/1', '--count', '4', '--id', 'flagged'];
    const { code, stdout, stderr } = await temper.run(...args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^flagged +2 rollouts: tests 2, exit 1$/m);
    assert.match(stdout, /^generated:test\/1#0 +1\.00 +flagged\/\S+rollout-0-0 +tests, exit$/m);
    const { result, flagged } = JSON.parse((await temper.run('eval', 'show', 'flagged', '--json')).stdout);
    assert.deepEqual(result.flags, { rollouts: 2, tricks: { tests: 2, exit: 1 } });
    assert.deepEqual(
      flagged.map(({ taskId, flags }: { taskId: string; flags: string[] }) => [taskId, flags]),
      [
        ['generated:test/1#0', ['tests', 'exit']],
        ['generated:test/1#1', ['tests']],
      ],
    );
  });

  it('counts the rewards of flagged rollouts as --on-flag says, by trick', async () => {
    const args = ['eval', '--tasks', 'generated:test/1', '--count', '4', '--id', 'acted'];
    const { code, stdout, stderr } = await temper.run(...args, '--on-flag', 'tests=zero,exit=exclude');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^flagged +2 rollouts: tests 2, exit 1; counted as 0 for tests 2$/m);
    const excluded = await temper.run(...args.slice(0, -1), 'excluded', '--on-flag', 'exit=exclude');
    assert.match(excluded.stdout, /^flagged +2 rollouts: tests 2, exit 1; left out for exit 1$/m);
    for (const [sweep, counted, meanReward, flagged] of [
      ['acted', 4, 0.5, 0],
      ['excluded', 3, 1, 1],
    ] as const) {
      const { result } = JSON.parse((await temper.run('eval', 'show', sweep, '--json')).stdout);
      assert.deepEqual([result.counted, result.meanReward, result.leftOut.flagged], [counted, meanReward, flagged]);
    }
    const refused = await temper.run('eval', '--tasks', 'generated:test/1', '--on-flag', 'exit=drop');
    assert.deepEqual(
      [refused.code, /onFlag: exit: expected one of keep, exclude, zero/.test(refused.stderr)],
      [2, true],
    );
  });

  it('evaluates, shows and compares an upstream model by its name', async () => {
    stack.script = { reward: () => 1 };
    const options = join(stack.home, 'options.json');
    await writeFile(options, '{ "toolTimeoutSec": 5 }');
    const size = ['--tasks', 'generated:test/1', '--count', '4', '--id', 'others'];
    const args = ['eval', ...size, '--upstream', 'others', '--agent-options', options];
    const { code, stdout, stderr } = await temper.run(...args);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^others: 4 tasks of .*, 1 attempt each, mini \{"toolTimeoutSec":5\}, upstream others \(large\)$/m,
    );
    assert.match(stdout, /^tokens +280 sampled in 12 turns, 3,600 sent$/m);
    const compared = await temper.run('eval', 'compare', 'before', 'others');
    assert.match(compared.stdout, /^agent +mini → mini \{"toolTimeoutSec":5\}$/m);
    assert.match(compared.stdout, /^evaluated +policy version 0 → upstream others \(large\)$/m);
    const { comparisons } = JSON.parse((await temper.run('eval', 'compare', 'before', 'others', '--json')).stdout);
    const { evaluated } = comparisons[0].after;
    assert.deepEqual([evaluated.policyVersion, evaluated.upstream.model], [null, 'large']);
    const unknown = await temper.run('eval', '--tasks', 'generated:test/1', '--upstream', 'unknown');
    assert.deepEqual([unknown.code, /UnknownUpstream|expected one that upstreams/.test(unknown.stderr)], [1, true]);
    const wrong = await temper.run('eval', '--tasks', 'generated:test/1', '--upstream', 'a b');
    assert.deepEqual([wrong.code, /upstream: expected a name of letters/.test(wrong.stderr)], [2, true]);
  });

  it('packs a directory of tasks, as workers cannot read it, and says what tasks lose in a local sandbox', async () => {
    stack.script = { reward: () => 1 };
    const address = await writeHarborTask(join(stack.home, 'tasks'), 'one', {
      toml: '[environment]\ndocker_image = "image:1"\n',
    });
    await writeHarborTask(join(stack.home, 'tasks'), 'broken', { toml: '[environment]\ntpu = { type = "v5" }\n' });
    const sets = new Set<string>();
    for (const [number, named] of [join(stack.home, 'tasks'), address].entries()) {
      const args = ['eval', '--tasks', named, '--count', '1', '--sandbox', 'local', '--id', `packed-${number}`];
      const { code, stdout, stderr } = await temper.run(...args);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /not those of the tasks' images \(image:1\)/);
      assert.equal(/1 task of .* cannot be used and is left out.*environment\.tpu/.test(stderr), number === 0);
      sets.add(/tasks? of harbor:.*\/tasks.*, (packed as blob:[0-9a-f]{8}),/.exec(stdout)?.[1] ?? stdout);
    }
    assert.equal(sets.size, 1);
  });

  it('refuses a wrong set of tasks before anything starts', async () => {
    const broken = join(stack.home, 'tasks/broken');
    const empty = join(stack.home, 'empty');
    await mkdir(empty);
    for (const [named, message] of [
      ['./missing', /"\.\/missing" is neither a file or directory here nor an address/],
      ['./package.json', /"\.\/package\.json" is a file, which needs the name of its format before it/],
      ['generated:test', /--tasks: expected generated:train/],
      [empty, /--tasks: .*expected a directory with task\.toml/],
      [broken, /--tasks: .*environment\.tpu: expected no such table, got one/],
    ] as const) {
      const { code, stderr } = await temper.run('eval', '--tasks', named, '--id', 'wrong');
      assert.deepEqual([code, message.test(stderr)], [2, true], `${named}: ${stderr}`);
    }
    await assert.rejects(stack.server.client.workflow.getHandle('wrong').describe());
  });

  it('refuses an invalid input before anything starts', async () => {
    const none = await temper.run('eval', '--count', '3');
    assert.deepEqual([none.code, /--tasks <dir\|address> is missing/.test(none.stderr)], [2, true], none.stderr);
    const { code, stderr } = await temper.run('eval', '--tasks', 'generated:test/1', '--attempts', '0');
    assert.deepEqual([code, /--attempts <k>.*whole number from 1 to 1000/.test(stderr)], [2, true], stderr);
  });

  it('returns at once with --detach, after which the sweep can be paused, shown and resumed', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => promise };
    const { stdout } = await temper.run(
      'eval',
      '--tasks',
      'generated:test/1',
      '--count',
      '2',
      '--id',
      'later',
      '--detach',
    );
    assert.equal(stdout, 'later\n');
    const pause = await temper.run('pause', 'later', '--reason', 'lunch', '--json');
    assert.deepEqual(JSON.parse(pause.stdout), { id: 'later', kind: 'evaluationSweep', paused: true }, pause.stderr);
    const paused = await temper.run('eval', 'show', 'later');
    assert.match(paused.stdout, /paused · 0 of 2 attempts ended .*\npaused: lunch/);
    assert.equal((await temper.run('resume', 'later')).code, 0);
    resolve();
    await stack.server.client.workflow.getHandle('later').result();
  });

  it('is cancelled by Ctrl-C, waits for its rollouts and prints what has ended', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let agents = 0;
    stack.script = {
      reward: () => 1,
      agent: () => {
        agents += 1;
        return agents === 1 ? Promise.resolve() : promise;
      },
    };
    const evaluation = temper.start(
      'eval',
      '--tasks',
      'generated:test/1',
      '--count',
      '5',
      '--concurrency',
      '1',
      '--id',
      'stopped',
    );
    await until(() => agents === 2);
    // npm passes on a Ctrl-C that the terminal has sent as well.
    evaluation.process.kill('SIGINT');
    evaluation.process.kill('SIGTERM');
    const { code, stdout, stderr } = await evaluation.ended;
    resolve();
    assert.equal(code, 130, stderr);
    assert.match(stdout, /^ended early +cancelled; /m);
    assert.match(stdout, /^counted +1 of 5 attempts; left out: cancelled 1$/m);
    const running = `${searchAttributes.run.name}="stopped" AND ExecutionStatus="Running"`;
    await until(async () => (await stack.server.client.workflow.count(running)).count === 0);
  });
});
