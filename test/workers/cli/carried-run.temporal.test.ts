import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../../workflows/contracts/run.ts';
import { cliOn } from '../../helpers/cli.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

type ListedRun = Readonly<Record<'status' | 'startedAt', string>>;

describe('the commands on a run that has continued as new', () => {
  let stack: ScriptedStack;

  before(async () => {
    const reward = (id: string): number => (id.endsWith('rollout-0') ? 0 : 1);
    stack = await startScriptedStack({ script: { reward }, suggestContinueAsNewAt: 40 });
  });
  after(() => stack?.close());

  it('count from the start of its first execution', async () => {
    const { workflow } = stack.server.client;
    const request: RunRequest = { tasks: 'generated:train/1', steps: 4, groupsPerStep: 2, rolloutsPerGroup: 2 };
    const handle = await workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: 'run', args: [request] });
    const { runKey, startedAt = Number.NaN }: RunStatus = await handle.result();
    const first = await workflow.getHandle('run', runKey).describe();
    assert.ok(Math.abs(startedAt - first.startTime.getTime()) < 1_000, `${startedAt} is not the start of the run`);
    const temper = cliOn(stack.home, stack.server);
    const shown = await temper.run('show', 'run');
    const seconds = [...shown.stdout.matchAll(/^step .* (-?[\d.]+) s$/gm)].map(([, text]) => Number(text));
    assert.equal(seconds.length, 4, shown.stderr);
    assert.ok(Math.min(...seconds) >= 0, shown.stdout);
    assert.match(shown.stdout, /^scripted:7 +[\d.]+ +1 +trained 1 +0\.50$/m);
    const { updates, groupFates } = JSON.parse((await temper.run('show', 'run', '--json')).stdout);
    const { groups, quarters } = groupFates.durations;
    assert.deepEqual([updates, groups, quarters.length, groupFates.tasks.length], [4, 8, 4, 8]);
    // The list lags behind the history.
    const listed = await until(async () => {
      const { runs } = JSON.parse((await temper.run('status', '--json')).stdout);
      return runs.some(({ status }: ListedRun) => status === 'completed') ? runs : null;
    });
    const once = { status: 'completed', startedAt: new Date(startedAt).toISOString() };
    assert.deepEqual(
      listed.map(({ status, startedAt }: ListedRun) => ({ status, startedAt })),
      [once],
    );
  });
});
