import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { cliOn } from '../../helpers/cli.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

describe('a set of tasks that a command packs', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;
  let tasks: string;
  const { promise: agents, resolve: endAgents } = Promise.withResolvers<void>();

  before(async () => {
    stack = await startScriptedStack({ script: { reward: () => 1, agent: () => agents } });
    temper = cliOn(stack.home, stack.server);
    tasks = join(stack.home, 'tasks');
    await writeHarborTask(tasks, 'one', {});
  });
  after(async () => {
    endAgents();
    await stack?.close();
  });

  const output = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await temper.run(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const named = /harbor:\/.*\/tasks, packed as blob:[0-9a-f]{8}\b(?![0-9a-f])/;
  const summaryOf = async (id: string): Promise<string> =>
    (await (await stack.server.client.workflow.getHandle(id).describe()).staticSummary()) ?? '';

  it('leaves stdout empty where a list has nothing, and says on stderr how to begin', async () => {
    for (const list of [
      ['eval', 'list'],
      ['schedule', 'list'],
      ['host', 'list'],
    ]) {
      const { code, stdout, stderr } = await temper.run(...list);
      assert.deepEqual([code, stdout, /^no (sweeps|schedules|hosts)/.test(stderr)], [0, '', true], list.join(' '));
    }
  });

  it('has its name while a sweep of it is open', async () => {
    await output('eval', '--tasks', tasks, '--count', '1', '--id', 'open', '--detach');
    const shown = await until(async () => {
      const text = await output('show', 'open');
      return /^tasks: /m.test(text) ? text : null;
    });
    assert.match(shown, new RegExp(`^tasks: ${named.source}$`, 'm'));
    // Scripted workers name the tasks of a set by their numbers.
    await until(async () => /^open\/\S+ +0 /m.test(await output('status')));
    assert.match(await summaryOf('open'), named);
  });

  it('has its name in the list of schedules', async () => {
    await output('schedule', 'create', 'nightly', '--every', '6h', '--tasks', tasks);
    const listed = await until(async () => /^nightly .*$/m.exec(await output('schedule', 'list'))?.[0] ?? null);
    assert.match(listed, new RegExp(`1 × 32 tasks of ${named.source}`));
  });

  it('has its name where a run is shown', async () => {
    const size = '--steps 1 --groups 1 --rollouts 2'.split(' ');
    await output('train', '--tasks', tasks, ...size, '--id', 'run', '--detach');
    const shown = await until(async () => (await temper.run('show', 'run')).stdout || null);
    assert.match(shown, new RegExp(`^tasks: ${named.source}$`, 'm'));
    await output('cancel', 'run');
  });

  it('prints hints to stderr alone', async () => {
    const paused = await temper.run('schedule', 'pause', 'nightly');
    assert.deepEqual(
      [paused.stdout, paused.stderr],
      ['paused nightly\n', 'resume it with `temper schedule resume nightly`\n'],
    );
    const sweep = await temper.run('pause', 'open');
    assert.deepEqual([sweep.stdout, sweep.stderr], ['paused open\n', 'resume it with `temper resume open`\n']);
    await output('resume', 'open');
    await output('schedule', 'delete', 'nightly');
  });
});
