import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { type AtifTrajectory, toAtif } from '../../../infra/report/atif.ts';
import { tokenViews } from '../../../infra/report/token-views.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import type { Trace } from '../../../workflows/contracts/trace.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';

/** The fields of ATIF 1.7. Unknown fields are errors, and observations answer calls of their own step. */
const step = z
  .strictObject({
    step_id: z.int(),
    timestamp: z.iso.datetime(),
    source: z.enum(['system', 'user', 'agent']),
    message: z.string(),
    reasoning_content: z.string().optional(),
    tool_calls: z
      .array(
        z.strictObject({
          tool_call_id: z.string(),
          function_name: z.string(),
          arguments: z.record(z.string(), z.unknown()),
          extra: z.record(z.string(), z.unknown()).optional(),
        }),
      )
      .optional(),
    observation: z
      .strictObject({
        results: z.array(z.strictObject({ source_call_id: z.string().optional(), content: z.string() })),
      })
      .optional(),
    metrics: z
      .strictObject({
        prompt_tokens: z.int(),
        completion_tokens: z.int(),
        completion_token_ids: z.array(z.int()),
        logprobs: z.array(z.number()),
        extra: z.record(z.string(), z.unknown()),
      })
      .optional(),
    is_copied_context: z.literal(true).optional(),
  })
  .refine(({ source, tool_calls, reasoning_content, metrics }) =>
    source === 'agent' ? true : tool_calls === undefined && reasoning_content === undefined && metrics === undefined,
  )
  .refine(({ tool_calls = [], observation }) => {
    const ids = tool_calls.map((call) => call.tool_call_id);
    return (observation?.results ?? []).every(({ source_call_id: id }) => id === undefined || ids.includes(id));
  });
const trajectory = z.strictObject({
  schema_version: z.literal('ATIF-v1.7'),
  session_id: z.string(),
  trajectory_id: z.string(),
  agent: z.strictObject({ name: z.string(), version: z.string() }),
  steps: z
    .array(step)
    .min(1)
    .refine((steps) => steps.every(({ step_id }, index) => step_id === index + 1)),
  final_metrics: z.strictObject({
    total_prompt_tokens: z.int(),
    total_completion_tokens: z.int(),
    total_steps: z.int(),
  }),
  extra: z.record(z.string(), z.unknown()),
  get subagent_trajectories() {
    return z.array(trajectory).optional();
  },
});

const end = '<|im_end|>';
const call = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>';
const tools = [{ type: 'function', function: { name: 'bash' } }];
const result = {
  workflowId: 'rollout/x/1',
  task: 'x',
  agent: 'mini',
  outcome: 'scored',
  reward: 1,
  stop: 'submitted',
  failure: null,
} as RolloutResult;

/** Makes a trace in which the agent calls a tool, and then starts a fork with a history of its own. */
async function forked() {
  const replies = [call, 'Done.', 'Again.'].map((text) => text + end);
  const engine = createScriptedEngine({
    script: (_, index) => ({ kind: 'say', ids: tokens.encode(replies[index] ?? '') }),
  });
  await using gateway = await startTestGateway(engine);
  const { tokens } = gateway.model;
  const secret = await gateway.open('a.1');
  const task = [
    { role: 'system', content: 'You fix bugs.' },
    { role: 'user', content: 'Fix it.' },
  ];
  const { json } = await gateway.chat(secret, { messages: task, tools });
  const { message } = json.choices[0];
  const answered = [...task, message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'a.js' }];
  await gateway.chat(secret, { messages: answered, tools });
  const forkMessages = [
    ...task,
    { role: 'assistant', content: 'I have looked.' },
    { role: 'user', content: 'Continue.' },
  ];
  await gateway.chat(secret, { messages: forkMessages, tools });
  const trace = await gateway.traceOf(await gateway.control.seal('a.1'));
  return { trace, nameOf: tokens.nameOf };
}

describe('toAtif', () => {
  it('uses only fields of the format, and contains every turn once besides copied steps', async () => {
    const { trace } = await forked();
    const atif: AtifTrajectory = toAtif(result, trace);
    trajectory.parse(atif);
    assert.deepEqual(atif.extra.reward, 1);
    assert.deepEqual(atif.agent, { name: result.agent, version: 'unknown' });
    assert.equal(toAtif({ ...result, agentVersion: '1.2.3' }, trace).agent.version, '1.2.3');
    const all = [atif, ...(atif.subagent_trajectories ?? [])].flatMap(({ steps }) => steps);
    const own = all.filter((one) => one.metrics !== undefined && one.is_copied_context === undefined);
    assert.deepEqual(own.map(({ metrics }) => metrics?.extra.turn).sort(), [0, 1, 2]);
    for (const { metrics } of own) {
      const turn = trace.turns[metrics?.extra.turn ?? -1];
      assert.deepEqual([metrics?.completion_token_ids, metrics?.logprobs], [turn?.sampledIds, turn?.logprobs]);
    }
  });

  it('takes the main line as the trajectory, not a branch that was set aside', async () => {
    const { trace } = await forked();
    const kinds = (aside: boolean) => {
      const branches = trace.branches?.map((branch, at) => {
        return at === 0 ? branch : { ...branch, kind: 'fork' as const, ...(aside && { aside: true as const }) };
      });
      const { extra, steps } = toAtif(result, { ...trace, ...(branches !== undefined && { branches }) });
      return [extra.kind, steps.findLast(({ source }) => source === 'agent')?.message];
    };
    assert.deepEqual(kinds(false), ['fork', 'Again.']);
    assert.deepEqual(kinds(true), ['main', 'Done.']);
  });

  it('puts a tool result into the step that called it', async () => {
    const atif = toAtif(result, (await forked()).trace);
    const steps = [atif, ...(atif.subagent_trajectories ?? [])].flatMap((one) => one.steps);
    const calling = steps.find(({ tool_calls }) => tool_calls !== undefined);
    assert.deepEqual(calling?.tool_calls?.[0]?.arguments, { command: 'ls' });
    assert.deepEqual(calling?.observation?.results, [
      { source_call_id: calling?.tool_calls?.[0]?.tool_call_id, content: 'a.js' },
    ]);
  });

  it('keeps arguments that are not a JSON object separately', () => {
    const turn = {
      index: 0,
      parent: null,
      promptIds: [1],
      promptLength: 1,
      sampledIds: [2],
      logprobs: [-1],
      versions: [],
      finishReason: 'stop',
      startedAt: 0,
      endedAt: 0,
    };
    const entry = { role: 'assistant', text: '', calls: [{ id: 'c', name: 'bash', arguments: '{"a":' }], turn: 0 };
    const branches = [{ kind: 'main', lastTurn: 0, segment: null }];
    const trace = { session: 's', turns: [turn], branches, transcript: [entry] } as unknown as Trace;
    const [made] = toAtif(result, trace).steps[0]?.tool_calls ?? [];
    assert.deepEqual([made?.arguments, made?.extra], [{}, { unparsed_arguments: '{"a":' }]);
  });
});

describe('tokenViews', () => {
  it('marks tokens as given, sampled or masked, and does not repeat those of an earlier segment', async () => {
    const { trace, nameOf } = await forked();
    const { views } = tokenViews(trace, nameOf);
    assert.equal(views.length, trace.segments.length);
    for (const [index, { tokens, shared, left }] of views.entries()) {
      const segment = trace.segments[index];
      assert.equal(shared + tokens.length + left, segment?.tokens.length);
      for (const [offset, { is, logprob }] of tokens.entries()) {
        assert.equal(is === 'sampled', segment?.mask[shared + offset] === 1);
        if (is === 'sampled') assert.equal(logprob, segment?.logprobs[shared + offset]);
        assert.equal(is === 'given', logprob === null);
      }
    }
    const sampled = views.map(({ tokens }) =>
      tokens
        .filter(({ is }) => is === 'sampled')
        .map(({ text }) => text)
        .join(''),
    );
    assert.deepEqual(sampled, [`${call}${end}Done.${end}`, `Again.${end}`]);
    assert.ok((views[1]?.shared ?? 0) > 0);
  });

  it('shows the ends of a long prompt with the sampled tokens after it, and the first of many segments', () => {
    const length = 20_000;
    const tokens = Array.from({ length }, (_, at) => at);
    const mask = tokens.map((at) => (at < length - 2 ? 0 : 1));
    const segment = { index: 0, kind: 'main', tokens, mask, logprobs: tokens.map(() => -1), versions: mask };
    const trace = { turns: [], segments: Array.from({ length: 20 }, () => segment) } as unknown as Trace;
    const { views, segmentsLeft } = tokenViews(trace, String);
    assert.deepEqual([views.length, segmentsLeft], [16, 4]);
    const [view] = views;
    assert.deepEqual([view?.length, view?.trained, view?.left], [length, 2, 0]);
    const texts = view?.tokens.map(({ text }) => text) ?? [];
    assert.deepEqual([texts[0], texts[399], texts[400], texts[401]], ['0', '399', '… 19398 tokens …', '19798']);
    assert.deepEqual(
      view?.tokens.slice(-2).map(({ text, is }) => [text, is]),
      [
        ['19998', 'sampled'],
        ['19999', 'sampled'],
      ],
    );
  });
});
