import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepReport, SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

describe('an evaluation sweep', () => {
  let stack: ScriptedStack;

  before(async () => {
    stack = await startScriptedStack();
  });
  beforeEach(() => {
    stack.script = { reward: () => 1 };
  });
  after(async () => {
    await stack?.close();
  });

  const sweep = (workflowId: string, request: SweepRequest): Promise<SweepResult> =>
    stack.server.client.workflow.execute('evaluationSweep', {
      taskQueue: controlQueue,
      workflowId,
      args: [request],
    });
  const reportOf = async ({ report }: SweepResult): Promise<SweepReport> =>
    (await createFileStore(`${stack.home}/store`).getJson(report.digest)) as SweepReport;
  /** Waits for the workflow list, which lags behind the histories. */
  const untilCount = (query: string, isRight: (count: number) => boolean): Promise<boolean> =>
    until(async () => isRight((await stack.server.client.workflow.count(query)).count));

  it('names the upstream model that it evaluates, and pins no policy version', async () => {
    stack.script = { reward: (id) => (/rollout-0-/.test(id) ? 1 : 0) };
    const result = await sweep('of-others', { tasks: 'set', count: 2, upstream: 'others' });
    assert.deepEqual(result.upstream, { name: 'others', model: 'large' });
    assert.deepEqual([result.policyVersion, result.counted, result.passAt1?.mean], [null, 2, 0.5]);
    assert.deepEqual([result.cost.turns, result.cost.sampledTokens, result.cost.promptTokens], [6, 140, 1800]);
    const { input, run } = await reportOf(result);
    assert.deepEqual([input.upstream, run], ['others', null]);
    const asked = stack.workers.opened.slice(-2).map(({ upstream, policyVersion }) => [upstream, policyVersion]);
    assert.deepEqual(asked, [
      ['others', undefined],
      ['others', undefined],
    ]);
  });

  it('ends early when the name of the upstream model means another model', async () => {
    let ended = 0;
    stack.script = {
      reward: () => 1,
      upstreamModel: () => (ended < 2 ? 'large' : 'small'),
      agent: async () => {
        ended += 1;
      },
    };
    const result = await sweep('other-model', { tasks: 'set', count: 20, concurrency: 1, upstream: 'others' });
    assert.deepEqual([result.upstream?.model, result.counted, result.leftOut['other-version']], ['large', 1, 1]);
    assert.match(result.endedEarly ?? '', /others is another model now: the sweep evaluates large, and small sampled /);
  });

  it('is refused before it starts a rollout if its upstream model is not configured, or if it names a version too', async () => {
    const causeOf = (error: Error): string => String((error.cause as Error).cause ?? error.cause);
    await assert.rejects(sweep('unknown-upstream', { tasks: 'set', upstream: 'unknown' }), (error: Error) => {
      assert.match(causeOf(error), /upstream: expected one that upstreams\.json names \(others\), got unknown/);
      return true;
    });
    await assert.rejects(sweep('both', { tasks: 'set', upstream: 'others', policyVersion: 0 }), (error: Error) => {
      assert.match(causeOf(error), /upstream: expected it without policyVersion/);
      return true;
    });
    await untilCount('TemperRun IN ("unknown-upstream", "both") AND WorkflowType="rollout"', (count) => count === 0);
    const training = stack.server.client.workflow.execute('rollout', {
      taskQueue: controlQueue,
      workflowId: 'training',
      args: [{ task: 'set#0', upstream: 'others' }],
    });
    await assert.rejects(training, (error: Error) => {
      assert.match(causeOf(error), /upstream: expected it only with purpose "evaluation"/);
      return true;
    });
  });
});
