import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { triggerStepSchedules } from '../../../infra/temporal/step-schedules.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import type { RunRequest } from '../../../workflows/contracts/run.ts';
import type { SweepResult } from '../../../workflows/contracts/sweep.ts';
import { cliOn } from '../../helpers/cli.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

const exec = promisify(execFile);

describe('temper schedule', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;

  before(async () => {
    stack = await startScriptedStack({ script: { reward: (id) => (id.endsWith('rollout-0') ? 0 : 1) } });
    temper = cliOn(stack.home, stack.server);
  });
  after(async () => {
    await stack?.close();
  });

  const create = (id: string, ...args: string[]) =>
    temper.run('schedule', 'create', id, '--tasks', 'generated:test/1', '--count', '2', ...args);
  const listed = async () => {
    const { stdout } = await temper.run('schedule', 'list', '--json');
    const rows = stdout.split('\n').filter((line) => line !== '');
    return rows.map((line) => JSON.parse(line));
  };
  /** Lists the sweeps of a schedule, whose ids begin with the schedule's id. */
  const sweepsOf = async (id: string): Promise<string[]> => {
    const found: string[] = [];
    const query = `WorkflowType="evaluationSweep" AND WorkflowId STARTS_WITH "${id}"`;
    for await (const { workflowId } of stack.server.client.workflow.list({ query })) found.push(workflowId);
    return found;
  };

  it('creates a cron schedule, which temper and `temporal schedule` can trigger', async () => {
    const { code, stdout, stderr } = await create('nightly', '--cron', '0 3 * * *', '--timezone', 'Europe/Berlin');
    assert.deepEqual([code, stdout], [0, 'nightly: cron 0 3 * * * Europe/Berlin\n'], stderr);
    const triggered = await temper.run('schedule', 'trigger', 'nightly');
    assert.equal(triggered.code, 0, triggered.stderr);
    const [first = ''] = await until(async () => some(await sweepsOf('nightly')));
    const result: SweepResult = await stack.server.client.workflow.getHandle(first).result();
    assert.equal(result.counted, 2);
    await exec(stack.server.cli, ['schedule', 'trigger', '--schedule-id', 'nightly', ...stack.server.cliFlags], {
      env: { PATH: process.env.PATH, HOME: stack.home },
    });
    await until(async () => (await sweepsOf('nightly')).length === 2);
    const [row] = await until(async () => some((await listed()).filter(({ last }) => last !== null)));
    assert.deepEqual(
      [row.id, row.when, row.about],
      ['nightly', 'cron 0 3 * * * Europe/Berlin', 'mini: 1 × 2 tasks of generated:test/1'],
    );
    assert.match(row.next, /T0[12]:00:00/);
  });

  it('stores overlap policy, catch-up window and jitter', async () => {
    const args = ['--every', '6h', '--overlap', 'buffer-one', '--catch-up', '10m', '--jitter', '90s'];
    const { stdout } = await create('often', ...args, '--json');
    assert.deepEqual(JSON.parse(stdout), { id: 'often', when: 'every 6h', paused: false });
    const { policies, spec } = await stack.server.client.schedule.getHandle('often').describe();
    assert.deepEqual([policies.overlap, policies.catchupWindow, spec.jitter], ['BUFFER_ONE', 600_000, 90_000]);
    assert.deepEqual(
      spec.intervals?.map(({ every }) => every),
      [21_600_000],
    );
  });

  it('pauses, resumes and deletes its own schedules, and refuses any other', async () => {
    const pause = await temper.run('schedule', 'pause', 'often', '--reason', 'budget', '--json');
    assert.deepEqual(JSON.parse(pause.stdout), { id: 'often', paused: true }, pause.stderr);
    const paused = await until(async () => (await listed()).find(({ id, paused }) => id === 'often' && paused) ?? null);
    assert.deepEqual([paused.note, paused.next], ['budget', null]);
    assert.equal((await temper.run('schedule', 'resume', 'often')).code, 0);
    assert.equal((await temper.run('schedule', 'delete', 'often')).code, 0);
    await until(async () => (await listed()).every(({ id }) => id !== 'often'));
    await stack.server.client.schedule.create({
      scheduleId: 'temper-reaper-x',
      spec: {},
      action: { type: 'startWorkflow', workflowType: 'reaper', taskQueue: controlQueue, args: [{ host: 'x' }] },
    });
    const { code, stderr } = await temper.run('schedule', 'delete', 'temper-reaper-x');
    assert.deepEqual([code, /was not created by `temper schedule`/.test(stderr)], [1, true], stderr);
  });

  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['no time', [], /expected exactly one of --cron, --every and --every-steps, got 0/],
    ['two times', ['--cron', '0 3 * * *', '--every', '1h'], /--every-steps, got 2/],
    ['an invalid cron expression', ['--cron', '99 99 * * *'], /the server rejects cron 99 99 \* \* \*: /],
    ['an invalid interval', ['--every', 'often'], /--every <duration>.*for example 90s or 6h/],
    ['steps without a run', ['--every-steps', '5'], /--every-steps and --run must be given together/],
    [
      'an overlap policy that runs no clean-up',
      ['--every', '1h', '--overlap', 'terminate-other'],
      /--overlap <policy>/,
    ],
    ['an invalid sweep', ['--every', '1h', '--attempts', 'many'], /--attempts <k>/],
  ];
  for (const [what, args, message] of wrong) {
    it(`${what} is refused, and no schedule is created`, async () => {
      const { code, stderr } = await create('wrong', ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
      await assert.rejects(stack.server.client.schedule.getHandle('wrong').describe());
    });
  }

  it('evaluates every n steps of a run, and a repeated step triggers no second sweep', async () => {
    const args = ['--every-steps', '2', '--run', 'my-run', '--overlap', 'allow-all'];
    assert.equal((await create('by-steps', ...args)).code, 0);
    await until(async () => (await listed()).some(({ id }) => id === 'by-steps'));
    const request: RunRequest = { tasks: 'generated:train/1', steps: 5, groupsPerStep: 1, rolloutsPerGroup: 2 };
    const handle = await stack.server.client.workflow.start('trainingRun', {
      taskQueue: controlQueue,
      workflowId: 'my-run',
      args: [request],
    });
    const { runKey } = await handle.result();
    const sweeps = await until(async () => {
      const found = await sweepsOf('by-steps');
      return found.length === 2 ? found : null;
    });
    for (const id of sweeps) await stack.server.client.workflow.getHandle(id).result();
    for (const step of [4, 6, 6, 7]) {
      const triggered = await triggerStepSchedules(stack.server.client, { run: 'my-run', runKey, step });
      assert.deepEqual(triggered, step === 7 ? [] : ['by-steps']);
    }
    await until(async () => (await sweepsOf('by-steps')).length === 3);
    const schedule = stack.server.client.schedule.getHandle('by-steps');
    await until(async () => (await schedule.describe()).info.numActionsTaken === 3);
  });
});

const some = <Item>(items: readonly Item[]): readonly Item[] | null => (items.length === 0 ? null : items);
