import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { assembleMessage, eventsOf } from '../../../helpers/gateway/assemble-streams.ts';
import { retried, startTestGateway } from '../../../helpers/gateway/gateway.ts';

const path = '/v1/messages';
const ephemeral = { cache_control: { type: 'ephemeral' } };
const block = (text: string) => ({ type: 'text', text });
const tools = [{ name: 'Bash', description: 'Runs.', input_schema: { type: 'object' } }];
/** A request in the form that Claude Code sends. */
const claude = {
  model: 'policy',
  system: [block('You are an agent.'), { ...block('Be brief.'), ...ephemeral }],
  tools,
  max_tokens: 32_000,
  stream: true,
  thinking: { type: 'enabled', budget_tokens: 1_000 },
  metadata: { user_id: 'x' },
  context_management: {},
};
const callText = '<tool_call>\n{"name": "Bash", "arguments": {"command": "ls", "n": 1.0}}\n</tool_call>';

describe('the messages dialect', () => {
  it('makes one branch of a tool-using conversation, token for token', async () => {
    const said = [`<think>\nhm\n</think>\n\nI look.\n${callText}\n${callText}<|im_end|>`, 'Done.<|im_end|>'];
    const engine = createScriptedEngine({ script: (_, index) => ({ kind: 'say', ids: encode(said[index] ?? '') }) });
    await using gateway = await startTestGateway(engine);
    const encode = (text: string): number[] => gateway.model.tokens.encode(text);
    const secret = await gateway.open('s1.1');
    const first = await gateway.post(`${path}?beta=true`, secret, {
      ...claude,
      messages: [{ role: 'user', content: [block('Context.'), { ...block('Fix it.'), ...ephemeral }] }],
    });
    assert.match(String(first.headers['content-type']), /^text\/event-stream/);
    const message = assembleMessage(first.text);
    const [thinking, text, ...calls] = message.content;
    assert.deepEqual([thinking.type, thinking.thinking, text.text], ['thinking', 'hm', 'I look.']);
    assert.notEqual(thinking.signature, '');
    assert.deepEqual(
      calls.map(({ type, name, input }: Record<string, unknown>) => [type, name, input]),
      Array(2).fill(['tool_use', 'Bash', { command: 'ls', n: 1 }]),
    );
    assert.notEqual(calls[0].id, calls[1].id);
    const [one] = engine.requests;
    assert.deepEqual(
      [message.stop_reason, message.usage.input_tokens, message.usage.output_tokens],
      ['tool_use', one?.tokenIds.length, encode(said[0] ?? '').length],
    );
    assert.equal(eventsOf(first.text)[0].message.usage.input_tokens, one?.tokenIds.length);

    const second = await gateway.post(path, secret, {
      ...claude,
      stream: false,
      messages: [
        // Claude Code echoes the turn with its cache mark moved, and with a note behind a result.
        { role: 'user', content: [block('Context.'), block('Fix it.')] },
        { role: 'assistant', content: message.content },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: calls[0].id, content: 'a.js' },
            { type: 'tool_result', tool_use_id: calls[1].id, content: [block('no')], is_error: true, ...ephemeral },
            block('A note.'),
          ],
        },
        { role: 'system', content: [block('Hurry.')] },
      ],
    });
    assert.deepEqual(
      [second.json.type, second.json.role, second.json.stop_reason, second.json.content],
      ['message', 'assistant', 'end_turn', [block('Done.')]],
    );
    assert.deepEqual(engine.requests[1]?.tokenIds, [
      ...(one?.tokenIds ?? []),
      ...encode(said[0] ?? ''),
      ...encode(
        '\n<|im_start|>user\n<tool_response>\na.js\n</tool_response>\n<tool_response>\nno\n</tool_response><|im_end|>\n<|im_start|>user\nA note.<|im_end|>\n<|im_start|>system\nHurry.<|im_end|>\n<|im_start|>assistant\n',
      ),
    ]);
    const summary = await gateway.control.seal('s1.1');
    assert.deepEqual([summary.turns, summary.segments], [2, 1]);
    assert.equal((await gateway.traceOf(summary)).forks, 0);
  });

  it('continues a branch when a client drops the thinking or sends its own', async () => {
    const said = ['<think>\nhm\n</think>\n\nOne.<|im_end|>', 'Two.<|im_end|>'];
    const engine = createScriptedEngine({
      script: (_, index) => ({ kind: 'say', ids: gateway.model.tokens.encode(said[index] ?? '') }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const user = { role: 'user', content: 'x' };
    await gateway.post(path, secret, { ...claude, messages: [user] });
    const echo = { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'x' }, block('One.')] };
    await gateway.post(path, secret, { ...claude, messages: [user, echo, user] });
    assert.equal((await gateway.control.seal('s1.1')).segments, 1);
  });

  it('sends the same message whole and streamed', async () => {
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode(`<think>\nhm\n</think>\n\nHéllo ${callText}`) }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const body = { system: 'Be brief.', tools, messages: [{ role: 'user', content: 'x' }] };
    const whole = await gateway.post(path, secret, body);
    const streamed = await gateway.post(path, secret, { ...body, stream: true }, { headers: retried });
    assert.deepEqual(assembleMessage(streamed.text), whole.json);
    assert.equal(engine.requests.length, 1);
  });

  it('ends a reply at its limit with max_tokens, and gives an empty one an empty block', async () => {
    const engine = createScriptedEngine({
      script: (_, index) => (index === 0 ? { kind: 'say', ids: [65], cut: 'length' } : { kind: 'say', ids: [] }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const ask = (text: string) => ({ messages: [{ role: 'user', content: text }], max_tokens: 1, stream: true });
    const cut = assembleMessage((await gateway.post(path, secret, ask('a'))).text);
    assert.deepEqual([cut.stop_reason, engine.requests[0]?.maxTokens], ['max_tokens', 1]);
    const empty = assembleMessage((await gateway.post(path, secret, ask('b'))).text);
    assert.deepEqual([empty.stop_reason, empty.content], ['end_turn', [block('')]]);
  });

  it('counts tokens as the engine would receive them, without a turn', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const count = async (messages: object[]): Promise<number> => {
      const { stream, max_tokens, ...body } = claude;
      const reply = await gateway.post(`${path}/count_tokens?beta=true`, secret, { ...body, messages });
      assert.equal(reply.status, 200, reply.text);
      return reply.json.input_tokens;
    };
    const user = { role: 'user', content: 'x' };
    const counts = [await count([user])];
    assert.equal((await gateway.control.status('s1.1'))?.turns, 0);
    await gateway.post(path, secret, { ...claude, messages: [user] });
    const echo = { role: 'assistant', content: 'AB' };
    counts.push(await count([user, echo, user]));
    await gateway.post(path, secret, { ...claude, messages: [user, echo, user] });
    assert.deepEqual(
      counts,
      engine.requests.map(({ tokenIds }) => tokenIds.length),
    );
    assert.ok((await count([user, echo])) > (counts[0] ?? 0), 'a reply may be last here');
    await gateway.control.seal('s1.1');
    const late = await gateway.post(`${path}/count_tokens`, secret, { messages: [user] });
    assert.deepEqual([late.status, late.json.error.type], [410, 'invalid_request_error']);
  });

  it('reports a context overflow with the text that makes Claude Code compact', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }), contextLength: 100 });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const body = { messages: [{ role: 'user', content: 'x'.repeat(100) }], stream: true };
    const counted = await gateway.post(`${path}/count_tokens`, secret, body);
    const reply = await gateway.post(path, secret, body);
    assert.equal(reply.status, 400);
    assert.deepEqual(reply.json, {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: `prompt is too long: ${counted.json.input_tokens} tokens > 100 maximum`,
      },
    });
  });

  it('reports limits, and an engine that dies before or in mid-stream, with the types that clients know', async () => {
    const engine = createScriptedEngine({
      // The first request is tried as often as there is time; the second begins well.
      script: ({ tokenIds }) => ({
        kind: 'fail',
        ids: tokenIds.includes(90) ? [65, 66, 67] : [],
        type: 'EngineUnavailable',
      }),
      chunk: 1,
    });
    await using gateway = await startTestGateway(engine, { engineGraceMs: 50 });
    const secret = await gateway.open('s1.1', { maxTurns: 1 });
    const ask = (text: string) => ({ messages: [{ role: 'user', content: text }], stream: true });
    const before = await gateway.post(path, secret, ask('a'));
    assert.deepEqual(
      [before.status, before.json.error.type, before.headers['x-should-retry'], before.headers['retry-after']],
      [503, 'overloaded_error', 'true', '5'],
    );
    const within = eventsOf((await gateway.post(path, secret, ask('Z'))).text);
    assert.deepEqual([within[0].type, within.at(-1).type], ['message_start', 'error']);
    assert.equal(within.at(-1).error.type, 'overloaded_error');

    const wrong = await gateway.post(path, 'wrong', ask('a'));
    assert.deepEqual([wrong.status, wrong.json.error.type], [401, 'authentication_error']);
    const send = { path, headers: { 'x-api-key': secret } };
    assert.deepEqual((await gateway.send(send)).json.error.type, 'invalid_request_error');
    const broken = await gateway.send({ ...send, method: 'POST', body: '{' });
    assert.deepEqual([broken.status, broken.json.error.type], [400, 'invalid_request_error']);
  });

  it("rejects unknown content and Anthropic's own tools, in the shape of the API", async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) }));
    const secret = await gateway.open('s1.1');
    const other = { type: 'sculpture' };
    const user = { role: 'user', content: 'x' };
    const cases: readonly (readonly [object, RegExp])[] = [
      [{}, /^messages/],
      [{ messages: [] }, /^messages/],
      [{ messages: [{ role: 'user', content: [block('a'), other] }] }, /^messages\.0\.content\.1: .*"sculpture"/],
      [
        { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [other] }] }] },
        /^messages\.0\.content\.0\.content\.0: /,
      ],
      [{ messages: [user, { role: 'assistant', content: [other] }, user] }, /"sculpture"/],
      [{ messages: [user, { role: 'assistant', content: 'I' }] }, /must end with a user message/],
      [{ messages: [{ role: 'robot', content: 'x' }] }, /^messages\.0\.role/],
      [
        { messages: [user], tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
        /only Anthropic has this tool/,
      ],
      [{ messages: [user], system: [other] }, /^system\.0/],
    ];
    for (const [body, message] of cases) {
      const reply = await gateway.post(path, secret, body);
      assert.equal(reply.status, 400, reply.text);
      assert.deepEqual([reply.json.type, reply.json.error.type], ['error', 'invalid_request_error']);
      assert.match(reply.json.error.message, message);
    }
  });

  it('answers model lists and unknown paths in its own shape', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) }));
    const headers = { 'x-api-key': await gateway.open('s1.1'), 'anthropic-version': '2023-06-01' };
    const { name } = gateway.model;
    const list = await gateway.send({ path: '/v1/models?limit=1000', headers });
    assert.deepEqual([list.json.has_more, list.json.first_id, list.json.data[0].type], [false, name, 'model']);
    const one = await gateway.send({ path: `/v1/models/${name}`, headers });
    assert.deepEqual([one.json.id, one.json.display_name], [name, name]);
    const nothing = await gateway.send({ path: '/v1/messages/batches', method: 'POST', headers });
    assert.deepEqual([nothing.status, nothing.json.error.type], [404, 'not_found_error']);
  });
});
