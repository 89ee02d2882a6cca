import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { resumeSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

describe('a report that the store does not take', () => {
  let stack: ScriptedStack;
  let isAway = true;

  before(async () => {
    stack = await startScriptedStack();
  });
  beforeEach(() => {
    isAway = true;
    const summarise = async (): Promise<void> => {
      if (isAway) throw ApplicationFailure.nonRetryable('the store is away', 'StoreUnavailable');
    };
    stack.script = { reward: () => 1, summarise };
  });
  after(() => stack?.close());

  /** Starts a workflow whose report fails, and resumes it once the store is back. Returns its result. */
  async function finish(type: string, workflowId: string, input: object) {
    const options = { taskQueue: controlQueue, workflowId, args: [input] };
    const handle = await stack.server.client.workflow.start(type, options);
    const { pausedBecause } = await until(async () => {
      assert.equal((await handle.describe()).status.name, 'RUNNING');
      const status = await handle.query<{ readonly phase: string; readonly pausedBecause: string | null }>('status');
      return status.phase === 'paused' && status;
    });
    assert.match(pausedBecause ?? '', /^the results could not be summarised: the store is away; fix the cause/);
    isAway = false;
    await handle.signal(resumeSignal);
    return handle.result();
  }

  it('pauses a sweep, whose rows are summarised after the resume', async () => {
    const result = await finish('evaluationSweep', 'unreported', { tasks: 'set', count: 2, concurrency: 2 });
    assert.equal(result.counted, 2);
  });

  it('pauses a regrade likewise', async () => {
    const result = await finish('regrade', 'unreported-regrade', { run: 'unreported' });
    assert.equal(result.states.same, 2);
  });
});
