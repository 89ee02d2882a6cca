import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { assembleResponse, eventsOf } from '../../../helpers/gateway/assemble-streams.ts';
import { retried, startTestGateway } from '../../../helpers/gateway/gateway.ts';

const path = '/v1/responses';
const patch = '*** Begin Patch\n*** End Patch';
const tools = [
  { type: 'function', name: 'shell', description: 'Runs.', strict: false, parameters: { type: 'object' } },
  {
    type: 'custom',
    name: 'apply_patch',
    description: 'Edits.',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
  },
  {
    type: 'namespace',
    name: 'agents',
    description: 'Helpers.',
    tools: [{ type: 'function', name: 'spawn', parameters: { type: 'object' } }],
  },
  { type: 'web_search', external_web_access: false },
];
/** A request in the form that Codex sends. */
const codex = {
  model: 'policy',
  instructions: 'Be brief.',
  tools,
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: 'x',
};
const user = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });
const callOf = (name: string, args: object) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;

describe('the responses dialect', () => {
  it('makes one branch of a tool-using conversation, token for token', async () => {
    const said = [
      `<think>\nhm\n</think>\n\nI look.\n${callOf('shell', { command: ['ls'] })}\n${callOf('apply_patch', { input: patch })}\n${callOf('agents__spawn', {})}<|im_end|>`,
      'Done.<|im_end|>',
    ];
    const engine = createScriptedEngine({ script: (_, index) => ({ kind: 'say', ids: encode(said[index] ?? '') }) });
    await using gateway = await startTestGateway(engine);
    const encode = (text: string): number[] => gateway.model.tokens.encode(text);
    const secret = await gateway.open('s1.1');
    const input: object[] = [{ type: 'message', role: 'developer', content: 'Ask no questions.' }, user('Fix it.')];
    const first = await gateway.post(path, secret, { ...codex, input });
    assert.match(String(first.headers['content-type']), /^text\/event-stream/);
    const response = assembleResponse(first.text);
    const [reasoning, message, ...calls] = response.output;
    assert.deepEqual(reasoning.content, [{ type: 'reasoning_text', text: 'hm' }]);
    assert.deepEqual([message.role, message.content[0].text], ['assistant', 'I look.']);
    assert.deepEqual(
      calls.map(({ type, namespace, name, arguments: args, input: text }: Record<string, unknown>) => [
        type,
        namespace,
        name,
        args ?? text,
      ]),
      [
        ['function_call', undefined, 'shell', '{"command":["ls"]}'],
        ['custom_tool_call', undefined, 'apply_patch', patch],
        ['function_call', 'agents', 'spawn', '{}'],
      ],
    );
    const [one] = engine.requests;
    const promptText = gateway.model.tokens.decode(one?.tokenIds ?? []);
    assert.match(promptText, /Be brief\..*"agents__spawn".*Ask no questions\./s);
    assert.match(promptText, /Free text by this lark grammar:\\nstart: /);
    assert.ok(!promptText.includes('web_search'));
    assert.deepEqual(
      [response.usage.input_tokens, response.usage.output_tokens],
      [one?.tokenIds.length, encode(said[0] ?? '').length],
    );

    // Codex echoes the items one by one, without ids and statuses.
    const echo = response.output.map(({ id, status, ...item }: Record<string, unknown>) => item);
    const [shell, apply, spawn] = calls;
    input.push(
      ...echo,
      { type: 'function_call_output', call_id: shell.call_id, output: 'a.js' },
      { type: 'custom_tool_call_output', call_id: apply.call_id, output: [{ type: 'input_text', text: 'ok' }] },
      { type: 'function_call_output', call_id: spawn.call_id, output: '' },
    );
    const second = await gateway.post(path, secret, { ...codex, stream: false, input });
    assert.deepEqual([second.json.object, second.json.status], ['response', 'completed']);
    assert.equal(second.json.output[0].content[0].text, 'Done.');
    assert.deepEqual(engine.requests[1]?.tokenIds, [
      ...(one?.tokenIds ?? []),
      ...encode(said[0] ?? ''),
      ...encode(
        '\n<|im_start|>user\n<tool_response>\na.js\n</tool_response>\n<tool_response>\nok\n</tool_response>\n<tool_response>\n\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
      ),
    ]);
    const summary = await gateway.control.seal('s1.1');
    assert.deepEqual([summary.turns, summary.segments], [2, 1]);
    assert.equal((await gateway.traceOf(summary)).forks, 0);
  });

  it('sends the same response whole and streamed, and reads a string as a user message', async () => {
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode(`<think>\nhm\n</think>\n\nHéllo<|im_end|>`) }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const whole = await gateway.post(path, secret, { input: 'Hi.' });
    const again = { input: [user('Hi.')], stream: true };
    const streamed = await gateway.post(path, secret, again, { headers: retried });
    assert.deepEqual(assembleResponse(streamed.text), { ...whole.json, model: 'policy' });
    assert.equal(engine.requests.length, 1);
    assert.deepEqual(
      eventsOf(streamed.text)
        .map(({ type }) => type.replace('response.', ''))
        .filter((type) => !type.endsWith('.delta')),
      [
        'created',
        'in_progress',
        'output_item.added',
        'content_part.added',
        'reasoning_text.done',
        'content_part.done',
        'output_item.done',
        'output_item.added',
        'content_part.added',
        'output_text.done',
        'content_part.done',
        'output_item.done',
        'completed',
      ],
    );
  });

  it('passes arguments that are not free text to a custom tool unchanged, and continues the branch', async () => {
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode(callOf('apply_patch', { patch: 'x' })) }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const first = await gateway.post(path, secret, { ...codex, stream: false, input: [user('x')] });
    const [call] = first.json.output;
    assert.deepEqual([call.type, call.input], ['custom_tool_call', '{"patch":"x"}']);
    const result = { type: 'custom_tool_call_output', call_id: call.call_id, output: 'no patch' };
    await gateway.post(path, secret, { ...codex, stream: false, input: [user('x'), call, result] });
    assert.equal((await gateway.control.seal('s1.1')).segments, 1);
  });

  it('recognizes a reply whose pieces a client joins or splits', async () => {
    const said = ['One.Two.<|im_end|>', 'Three.<|im_end|>', 'Four.<|im_end|>'];
    const engine = createScriptedEngine({
      script: (_, index) => ({ kind: 'say', ids: gateway.model.tokens.encode(said[index] ?? '') }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const text = (part: string) => ({ type: 'output_text', text: part });
    const reply = (...parts: string[]) => ({ type: 'message', role: 'assistant', content: parts.map(text) });
    await gateway.post(path, secret, { input: [user('x')] });
    const joined = [user('x'), reply('One.', 'Two.'), user('y')];
    await gateway.post(path, secret, { input: joined });
    const split = [user('x'), reply('One.'), reply('Two.'), user('y'), reply('Three.'), user('z')];
    await gateway.post(path, secret, { input: split });
    assert.equal((await gateway.control.seal('s1.1')).segments, 1);
  });

  it('marks a reply that reached its limit as incomplete', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66], cut: 'length' }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const reply = await gateway.post(path, secret, { input: 'x', stream: true, max_output_tokens: 2 });
    const response = assembleResponse(reply.text);
    assert.deepEqual([response.status, response.incomplete_details], ['incomplete', { reason: 'max_output_tokens' }]);
    assert.equal(response.output[0].status, 'incomplete');
    assert.equal(engine.requests[0]?.maxTokens, 2);
  });

  it('reports a context overflow inside a stream, where Codex looks for it, and otherwise as a status', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }), contextLength: 100 });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const streamed = await gateway.post(path, secret, { input: 'x'.repeat(100), stream: true });
    assert.equal(streamed.status, 200);
    const { status, error } = assembleResponse(streamed.text);
    assert.deepEqual([status, error.code], ['failed', 'context_length_exceeded']);
    assert.match(error.message, /100 tokens/);
    const whole = await gateway.post(path, secret, { input: 'y'.repeat(100) });
    assert.deepEqual([whole.status, whole.json.error.code], [400, 'context_length_exceeded']);
    const refusals = gateway.events.filter((event) => event.kind === 'request-failed');
    assert.equal(refusals.length, 2, 'both are logged');
  });

  it('fails a response whose engine dies in mid-stream with a code that clients retry', async () => {
    const engine = createScriptedEngine({
      // The retry samples a different reply, and what the stream has sent cannot be taken back.
      script: (_, index) =>
        index === 0 ? { kind: 'fail', ids: [65, 66, 67], type: 'EngineUnavailable' } : { kind: 'say', ids: [66] },
      chunk: 1,
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const reply = await gateway.post(path, secret, { input: 'x', stream: true });
    const events = eventsOf(reply.text);
    assert.equal(events.at(-1).type, 'response.failed');
    assert.equal(events.at(-1).response.error.code, 'engine_unavailable');
    assert.equal(events.find(({ type }) => type === 'response.output_text.delta').delta, 'A');
  });

  it('rejects stored state, unknown items and unknown content, in the shape of the API', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) }));
    const secret = await gateway.open('s1.1');
    const other = { type: 'sculpture' };
    const cases: readonly (readonly [object, RegExp])[] = [
      [{ input: 'x', previous_response_id: 'resp_1', store: false }, /^previous_response_id: nothing is stored here/],
      [{ input: 'x', previous_response_id: 'resp_1' }, /previous_response_id/],
      [{ input: 'x', conversation: { id: 'c' } }, /^conversation: nothing is stored/],
      [{ input: [{ type: 'item_reference', id: 'm' }] }, /^input\.0: nothing is stored/],
      [{ input: [{ id: 'm' }] }, /^input\.0: nothing is stored/],
      [{ input: 'x', background: true }, /^background/],
      [{ input: [{ role: 'user', content: [other] }] }, /^input\.0\.content\.0: .*"sculpture"/],
      [{ input: [{ type: 'function_call_output', call_id: 'a', output: [other] }] }, /^input\.0\.output\.0: /],
      [{ input: [{ type: 'sculpture' }] }, /^input\.0\.type: expected message, .*, got "sculpture"/],
      [{ input: [{ type: '__proto__' }] }, /^input\.0\.type/],
      [{ input: [{ type: 'function_call', call_id: 'a' }] }, /^input\.0\.name/],
      [{ input: [{ role: 'robot', content: 'x' }] }, /^input\.0\.role/],
      [{}, /^input/],
    ];
    for (const [body, message] of cases) {
      const reply = await gateway.post(path, secret, body);
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.json.error.message, message);
      assert.equal(reply.json.error.type, 'invalid_request_error');
    }
    assert.equal((await gateway.post(path, 'wrong', {})).json.error.code, 'invalid_api_key');
  });

  it('returns a call of a tool to the namespace of the same name, turn for turn', async () => {
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode(`${callOf('exec__exec', {})}<|im_end|>`) }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const exec = { type: 'function', name: 'exec', parameters: { type: 'object' } };
    const namespaced = [{ type: 'namespace', name: 'exec', description: 'Runs.', tools: [exec] }];
    const input: object[] = [user('Go.')];
    for (let turn = 0; turn < 3; turn += 1) {
      const reply = await gateway.post(path, secret, { ...codex, stream: false, tools: namespaced, input });
      const [call] = reply.json.output;
      assert.deepEqual([call.type, call.namespace, call.name], ['function_call', 'exec', 'exec'], reply.text);
      const { id, status, ...echo } = call;
      input.push(echo, { type: 'function_call_output', call_id: call.call_id, output: '' });
    }
    const prompt = gateway.model.tokens.decode(engine.requests.at(-1)?.tokenIds ?? []);
    assert.deepEqual(new Set(prompt.match(/exec(?:__exec)*/g)), new Set(['exec__exec']));
    assert.equal((await gateway.control.seal('s1.1')).segments, 1);
  });

  it('answers the path by which OpenAI compacts with 404, so that an agent compacts by itself', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) }));
    const reply = await gateway.post(`${path}/compact`, await gateway.open('s1.1'), { ...codex, input: [user('x')] });
    assert.deepEqual([reply.status, reply.json.error.code], [404, 'not_found']);
  });

  it('counts tokens without a turn', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const counted = await gateway.post(`${path}/input_tokens`, secret, { ...codex, input: [user('x')] });
    assert.equal(counted.json.object, 'response.input_tokens');
    assert.equal((await gateway.control.status('s1.1'))?.turns, 0);
    await gateway.post(path, secret, { ...codex, input: [user('x')] });
    assert.equal(counted.json.input_tokens, engine.requests[0]?.tokenIds.length);
  });
});
