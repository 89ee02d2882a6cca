import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createQuarantine } from '../../infra/tasks/quarantine.ts';
import { sweepText } from '../../workers/cli/commands/eval/sweep-text.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepReport, SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { createFileStore, createRecords } from '../helpers/store/file-store.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';

describe('a sweep over a set with a quarantined task', () => {
  let stack: ScriptedStack;

  before(async () => {
    stack = await startScriptedStack();
    const evidence = [{ rollout: 'r', reward: 1, verdict: 'graded', diff: 'd', log: null }];
    await createQuarantine(createRecords(stack.home)).add({ task: 'one', addresses: ['set#1'], evidence });
  });
  after(async () => {
    await stack?.close();
  });

  const sweep = async (workflowId: string): Promise<SweepReport> => {
    const args: [SweepRequest] = [{ tasks: 'set', count: 3 }];
    const start = { taskQueue: controlQueue, workflowId, args };
    const { report }: SweepResult = await stack.server.client.workflow.execute('evaluationSweep', start);
    return (await createFileStore(`${stack.home}/store`).getJson(report.digest)) as SweepReport;
  };

  it('skips and lists that task until it is released', async () => {
    const report = await sweep('without');
    assert.deepEqual(
      report.taskScores.map(({ address }) => address),
      ['set#0', 'set#2'],
    );
    assert.deepEqual([report.result.tasks, report.quarantined], [2, ['set#1']]);
    assert.match(sweepText(report), /quarantined and not attempted:\nset#1$/);
    await createQuarantine(createRecords(stack.home)).release('one');
    assert.deepEqual((await sweep('with')).result.tasks, 3);
  });
});
