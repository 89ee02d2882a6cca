import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { WorkflowNotFoundError } from '@temporalio/client';
import { regradeStatusQuery } from '../../../workflows/contracts/messages.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import { cliOn } from '../../helpers/cli.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

describe('temper regrade', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;

  before(async () => {
    stack = await startScriptedStack({ script: { reward: () => 0 } });
    temper = cliOn(stack.home, stack.server);
    const args = [{ tasks: 'set', count: 3, concurrency: 3 }];
    await stack.server.client.workflow.execute('evaluationSweep', {
      taskQueue: controlQueue,
      workflowId: 'sweep',
      args,
    });
  });
  after(async () => {
    await stack?.close();
  });

  it('prints the rollouts whose reward has changed, and `temper show` prints the same', async () => {
    let evaluations = 0;
    stack.script = { reward: () => (++evaluations === 1 ? 1 : 0) };
    const { code, stdout, stderr } = await temper.run(
      'regrade',
      '--run',
      'sweep',
      '--concurrency',
      '1',
      '--id',
      'again',
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^again: 3 rollouts, .*: same 2, changed 1$/m);
    assert.match(stdout, /^mean reward {2}0\.000 → 0\.333$/m);
    assert.match(stdout, /^sweep\/\S+rollout-\d-0 +set#\d +0\.00 +1\.00 +graded → graded$/m);
    assert.equal((await temper.run('show', 'again')).stdout, stdout);
    const [changed = ''] = /^sweep\/\S+(?= +set#\d +0\.00 +1\.00)/m.exec(stdout) ?? [];
    assert.match((await temper.run('show', changed)).stdout, /^graded again by again: changed, reward 0 → 1$/m);
    const { regrades } = JSON.parse((await temper.run('show', changed, '--json')).stdout);
    assert.deepEqual([regrades.length, regrades[0].row.after], [1, 1]);
  });

  it('prints every row as JSON if asked', async () => {
    let evaluations = 0;
    stack.script = { reward: () => ++evaluations % 2 };
    // Evaluations run one at a time: with two at once, both evaluations of a rollout might get the same reward.
    const oneByOne = ['--concurrency', '1', '--repeat', '2'];
    const { code, stdout } = await temper.run('regrade', '--run', 'sweep', ...oneByOne, '--json');
    const { states, rows, wallSeconds } = JSON.parse(stdout);
    assert.ok(wallSeconds > 0, stdout);
    assert.deepEqual([code, states.unstable, rows.length, rows[0].evaluations.length], [0, 3, 3, 2]);
  });

  it('refuses an invalid input before anything starts', async () => {
    const none = await temper.run('regrade');
    assert.deepEqual([none.code, /expected run, rollouts or grader/.test(none.stderr)], [2, true], none.stderr);
  });

  it('refuses rollouts and runs that the server does not know before anything starts', async () => {
    const unknown = await temper.run('regrade', 'rollout/nope', '--id', 'of-nothing');
    const other = await temper.run('regrade', 'sweep', '--id', 'of-nothing');
    const run = await temper.run('regrade', '--run', 'nope', '--id', 'of-nothing');
    assert.deepEqual([unknown.code, other.code, run.code], [2, 2, 2], unknown.stderr + other.stderr + run.stderr);
    assert.match(
      unknown.stderr,
      /expected workflow ids of rollouts, got rollout\/nope, which has no record, and this server does not know/,
    );
    assert.match(other.stderr, /expected workflow ids of rollouts, got sweep, which is a evaluationSweep/);
    assert.match(run.stderr, /expected a run with rollouts that have ended, got nope; `temper status` lists the runs/);
    await assert.rejects(stack.server.client.workflow.getHandle('of-nothing').describe(), WorkflowNotFoundError);
  });

  it('is cancelled by Ctrl-C and then prints what has ended', async () => {
    const first = Promise.withResolvers<void>();
    const rest = Promise.withResolvers<void>();
    let evaluations = 0;
    stack.script = {
      reward: () => 0,
      evaluate: () => {
        evaluations += 1;
        if (evaluations === 2) first.resolve();
        return evaluations === 1 ? Promise.resolve() : rest.promise;
      },
    };
    const running = temper.start('regrade', '--run', 'sweep', '--concurrency', '1', '--id', 'stopped');
    await first.promise;
    running.process.kill('SIGINT');
    const handle = stack.server.client.workflow.getHandle('stopped');
    await until(async () => (await handle.query(regradeStatusQuery)).phase === 'cancelling');
    rest.resolve();
    const { code, stdout, stderr } = await running.ended;
    assert.equal(code, 130, stderr);
    assert.match(stdout, /^ended early: cancelled$/m);
  });
});
