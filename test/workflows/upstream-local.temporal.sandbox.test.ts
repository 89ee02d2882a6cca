import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Upstreams } from '../../infra/gateway/upstream/upstreams.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepReport, SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { type ScriptedServer, startScriptedServer } from '../helpers/engine/scripted-server.ts';
import { startUpstreamRollouts, type UpstreamRollouts } from '../helpers/rollouts/upstream-rollouts.ts';

const call = (name: string, args: object) => ({
  content: null,
  tool_calls: [{ id: `call-${name}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
});

describe('a sweep of an upstream model, with mini in local sandboxes', () => {
  let model: ScriptedServer;
  let upstream: UpstreamRollouts;

  before(async () => {
    // The model solves only the task `easy`, which it recognises by the file in its instruction.
    model = await startScriptedServer({
      'POST /v1/chat/completions': (body) => {
        const { messages } = body as { messages: readonly { role: string; content: string }[] };
        const told = messages.at(-1)?.role === 'tool' ? messages.at(-1)?.content : null;
        const next = told === null ? call('bash', { command: 'cat name.txt' }) : answer(String(told));
        return {
          status: 200,
          json: {
            model: 'large-1',
            choices: [{ message: { role: 'assistant', ...next }, finish_reason: 'tool_calls' }],
            usage: { prompt_tokens: 100, completion_tokens: 10 },
          },
        };
      },
    });
    const upstreams: Upstreams = {
      find: async (name) => ({
        name,
        url: `${model.url}/v1`,
        model: 'large',
        apiKey: 'sk-secret',
        contextLength: 100_000,
        maxTokensField: 'max_tokens',
        returnsReasoning: false,
        readsImages: false,
        namesSession: false,
      }),
    };
    upstream = await startUpstreamRollouts(upstreams);
  });
  after(async () => {
    await upstream?.close();
    await model?.close();
  });

  function answer(told: string) {
    if (told.includes('easy')) return call('bash', { command: 'echo right > answer.txt; echo done' });
    return call('submit', {});
  }

  it('is scored like the policy, names the model, and counts its tokens', async () => {
    const request: SweepRequest = {
      tasks: `harbor:${upstream.tasks}`,
      settings: { agent: 'mini', sandbox: 'local' },
      upstream: 'others',
    };
    const result: SweepResult = await upstream.rollouts.client.workflow.execute('evaluationSweep', {
      taskQueue: controlQueue,
      workflowId: 'of-others',
      args: [request],
    });
    const report = (await upstream.rollouts.store.getJson(result.report.digest)) as SweepReport;
    assert.deepEqual(result.upstream, { name: 'others', model: 'large' }, JSON.stringify(report));
    assert.deepEqual([result.policyVersion, result.counted, result.passAt1?.mean], [null, 2, 0.5]);
    assert.deepEqual(
      report.taskScores.map(({ task, passed, turns, sampledTokens }) => [task, passed, turns, sampledTokens]),
      [
        ['easy', 1, 3, 30],
        ['hard', 0, 2, 20],
      ],
    );
    assert.equal(result.cost.promptTokens, 500);
    for await (const { workflowId } of upstream.rollouts.client.workflow.list({ query: 'WorkflowType="rollout"' })) {
      const history = await upstream.rollouts.client.workflow.getHandle(workflowId).fetchHistory();
      assert.doesNotMatch(JSON.stringify(history), /sk-secret/);
    }
  });
});
