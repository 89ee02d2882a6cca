import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { chunksOf, startTestGateway } from '../../../helpers/gateway/gateway.ts';

const tools = [{ type: 'function', function: { name: 'bash', description: 'Runs.', parameters: { type: 'object' } } }];
const callText = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>';

describe('the chat completions dialect', () => {
  it('makes one branch of a tool-using conversation, token for token', async () => {
    const said = [`<think>\nhm\n</think>\n\nI look.\n${callText}\n${callText}<|im_end|>`, 'Done.<|im_end|>'];
    const engine = createScriptedEngine({ script: (_, index) => ({ kind: 'say', ids: encode(said[index] ?? '') }) });
    await using gateway = await startTestGateway(engine);
    const encode = (text: string): number[] => gateway.model.tokens.encode(text);
    const secret = await gateway.open('s1.1');

    const messages: object[] = [
      { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
      { role: 'user', content: 'Fix it.' },
    ];
    const first = await gateway.chat(secret, { model: 'm', messages, tools, temperature: 0, seed: 1, stop: ['x'] });
    assert.equal(first.status, 200);
    const { message, finish_reason: reason } = first.json.choices[0];
    assert.equal(reason, 'tool_calls');
    assert.equal(message.content, 'I look.');
    assert.equal(message.reasoning_content, 'hm');
    assert.equal(message.tool_calls.length, 2);
    assert.deepEqual(JSON.parse(message.tool_calls[1].function.arguments), { command: 'ls' });
    assert.deepEqual(Object.keys(first.json.usage).slice(0, 3), ['prompt_tokens', 'completion_tokens', 'total_tokens']);

    messages.push(
      // Clients echo the reply with other ids, another spelling of the arguments, and no reasoning.
      {
        role: 'assistant',
        content: 'I look. ',
        tool_calls: message.tool_calls.map((call: { function: object }, index: number) => ({
          id: `mine-${index}`,
          type: 'function',
          function: { ...call.function, arguments: '{"command":"ls"}' },
        })),
      },
      { role: 'tool', tool_call_id: 'mine-0', content: 'a.js' },
      { role: 'tool', tool_call_id: 'mine-1', content: null },
    );
    const second = await gateway.chat(secret, { model: 'm', messages, tools });
    assert.equal(second.json.choices[0].finish_reason, 'stop');

    const [one, two] = engine.requests;
    assert.deepEqual([one?.temperature, one?.stopTokenIds], [1, gateway.model.stopTokenIds]);
    assert.deepEqual(two?.tokenIds, [
      ...(one?.tokenIds ?? []),
      ...encode(said[0] ?? ''),
      ...encode(
        '\n<|im_start|>user\n<tool_response>\na.js\n</tool_response>\n<tool_response>\n\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
      ),
    ]);

    const summary = await gateway.control.seal('s1.1');
    const { engineSeconds = 0, waitedSeconds, ...counted } = summary;
    assert.ok(engineSeconds > waitedSeconds);
    assert.deepEqual(
      { ...counted, trace: null },
      {
        trace: null,
        turns: 2,
        segments: 1,
        sampledTokens: encode(said.join('')).length,
        promptTokens: (one?.tokenIds.length ?? 0) + (two?.tokenIds.length ?? 0),
        minVersion: 1,
        maxVersion: 1,
        contextOverflow: false,
        turnLimit: false,
        engineFailures: 0,
        counts: {
          branches: { main: 1 },
          unclear: 0,
          dropped: 0,
          droppedTokens: 0,
          maskedTurns: 0,
          forks: 0,
          aborts: 0,
          echoes: { text: 1, reasoning: 1, arguments: 1, 'call-ids': 1 },
          calls: { ok: 2 },
          mainTurns: { all: 2, withoutCall: 1 },
        },
      },
    );
    const trace = await gateway.traceOf(summary);
    const [segment] = trace.segments;
    assert.deepEqual(segment?.tokens, [...(two?.tokenIds ?? []), ...encode(said[1] ?? '')]);
    const trained = segment?.tokens.filter((_, at) => segment.mask[at] === 1);
    assert.deepEqual(trained, encode(said.join('')));
    assert.deepEqual([trace.forks, trace.maskedTurns], [0, []]);
    assert.deepEqual(
      trace.transcript.map(({ role }) => role),
      ['system', 'user', 'assistant', 'tool', 'tool', 'assistant'],
    );
    assert.deepEqual(await gateway.control.seal('s1.1'), summary);
  });

  it('streams text as it is sampled, calls with their index and usage on request, and ends once', async () => {
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode(`Héllo\n${callText}${callText}<|im_end|>`) }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const body = { messages: [{ role: 'user', content: 'x' }], tools, stream: true };
    const reply = await gateway.chat(secret, { ...body, stream_options: { include_usage: true } });
    assert.match(String(reply.headers['content-type']), /^text\/event-stream/);
    assert.ok(reply.text.endsWith('data: [DONE]\n\n'));
    const chunks = chunksOf(reply);
    const deltas = chunks.flatMap((chunk) => chunk.choices.map((choice: { delta: object }) => choice.delta));
    assert.deepEqual(deltas[0], { role: 'assistant', content: '' });
    assert.equal(deltas.map((delta) => delta.content ?? '').join(''), 'Héllo');
    const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
    assert.deepEqual(
      calls.map((call) => [call.index, call.function.name]),
      [
        [0, 'bash'],
        [1, 'bash'],
      ],
    );
    assert.notEqual(calls[0].id, calls[1].id);
    assert.equal(chunks.at(-2).choices[0].finish_reason, 'tool_calls');
    assert.ok(chunks.at(-1).usage.completion_tokens > 0);
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);

    const without = await gateway.chatAgain(secret, body);
    assert.ok(chunksOf(without).every((chunk) => !('usage' in chunk)));
    assert.equal(engine.requests.length, 1, 'the same request is the same turn');
  });

  it('passes an invalid tool call to the agent as text and counts it', async () => {
    const broken = '<tool_call>\n{"name": "bash", "arguments": {\n</tool_call>';
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode(`${broken}${callText.replace('bash', 'fly')}`) }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const reply = await gateway.chat(secret, { messages: [{ role: 'user', content: 'x' }], tools });
    const { message } = reply.json.choices[0];
    assert.equal(message.content, broken);
    assert.deepEqual(
      message.tool_calls.map((call: { function: { name: string } }) => call.function.name),
      ['fly'],
    );
    const trace = await gateway.traceOf(await gateway.control.seal('s1.1'));
    assert.deepEqual(trace.faultyCalls, { 'invalid-json': 1, 'unknown-tool': 1 });
  });

  it('counts the turns of the main conversation in which no call was sampled, those of side calls not', async () => {
    const broken = '<tool_call>\n{"name": "bash", "arguments": {\n</tool_call>';
    const engine = createScriptedEngine({
      script: (_, index) => ({ kind: 'say', ids: gateway.model.tokens.encode(index === 1 ? broken : 'Well.') }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const task = { role: 'user', content: 'Fix it.' };
    await gateway.chat(secret, { messages: [{ role: 'user', content: 'Give it a title.' }] });
    const reply = await gateway.chat(secret, { messages: [task], tools });
    const messages = [task, reply.json.choices[0].message, { role: 'user', content: 'Continue.' }];
    await gateway.chat(secret, { messages, tools });
    const { counts } = await gateway.traceOf(await gateway.control.seal('s1.1'));
    assert.deepEqual(
      [counts.branches, counts.mainTurns],
      [
        { side: 1, main: 1 },
        { all: 2, withoutCall: 1 },
      ],
    );
  });

  it("ends a reply at its limit with length, and the client's max_tokens can only lower the limit", async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66], cut: 'length' }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const ask = (text: string, more: object) =>
      gateway.chat(secret, { messages: [{ role: 'user', content: text }], ...more });
    const reply = await ask('a', { max_tokens: 2 });
    assert.equal(reply.json.choices[0].finish_reason, 'length');
    await ask('b', { max_completion_tokens: 9_999 });
    await ask('c', {});
    assert.deepEqual(
      engine.requests.map(({ maxTokens }) => maxTokens),
      [2, 500, 500],
    );
  });

  it('reports invalid requests in the shape of the API', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const user = { role: 'user', content: 'x' };
    const deep = JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`);
    const cases: readonly (readonly [unknown, number, RegExp])[] = [
      [[], 400, /expected object/],
      [{}, 400, /messages/],
      [{ messages: [] }, 400, /messages/],
      [{ messages: [{ role: 'robot', content: 'x' }] }, 400, /role/],
      [{ messages: [{ role: 'user', content: [{ type: 'sculpture' }] }] }, 400, /"sculpture"/],
      [{ messages: [user], n: 2 }, 400, /n: expected 1/],
      [{ messages: [user], tools: [{ type: 'function', function: { name: 'f', parameters: deep } }] }, 400, /nested/],
      [{ messages: [user], tools: [{ type: 'custom' }] }, 400, /type function/],
    ];
    for (const [body, status, message] of cases) {
      const reply = await gateway.chat(secret, body as object);
      assert.equal(reply.status, status, reply.text);
      assert.match(reply.json.error.message, message);
      assert.equal(reply.json.error.type, 'invalid_request_error');
    }
    const headers = { authorization: `Bearer ${secret}` };
    const post = { method: 'POST', path: '/v1/chat/completions', headers };
    assert.equal((await gateway.send({ ...post, body: '{"messages": [' })).status, 400);
    assert.equal((await gateway.send({ ...post, method: 'GET' })).status, 405);
    assert.equal((await gateway.send({ ...post, path: '/v1/nothing' })).status, 404);
    const args = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: args } };
    const nested = await gateway.chat(secret, { messages: [user, { role: 'assistant', tool_calls: [call] }, user] });
    assert.equal(nested.status, 200, nested.text);
    assert.equal((await gateway.chat(secret, { messages: [user] })).status, 200, 'and the gateway still answers');
  });

  it('treats missing tools, null and an empty list as the same request', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const messages = [{ role: 'user', content: 'x' }];
    for (const offered of [{}, { tools: null }, { tools: [] }]) {
      assert.equal((await gateway.chatAgain(secret, { messages, ...offered })).status, 200);
    }
    assert.equal(engine.requests.length, 1);
  });

  it('rejects a body that is too large without keeping it', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const body = Buffer.alloc(50_000_000, 'x');
    const post = { method: 'POST', path: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, body };
    const reply = await gateway.send(post).catch((error) => error.code);
    assert.ok(reply === 'EPIPE' || reply === 'ECONNRESET' || reply.status === 413, String(reply));
    const chunked = await gateway
      .send({ ...post, headers: { ...post.headers, 'transfer-encoding': 'chunked' } })
      .catch((error) => error.code);
    assert.ok(chunked === 'EPIPE' || chunked === 'ECONNRESET' || chunked.status === 413, String(chunked));
    assert.equal((await gateway.chat(secret, { messages: [{ role: 'user', content: 'x' }] })).status, 200);
  });

  it('lists models, and answers HEAD / to show that it is there', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) }));
    const secret = await gateway.open('s1.1');
    const headers = { 'x-api-key': secret };
    const list = await gateway.send({ path: '/v1/models', headers });
    assert.equal(list.json.data[0].id, gateway.model.name);
    assert.equal((await gateway.send({ path: `/v1/models/${gateway.model.name}`, headers })).status, 200);
    assert.equal((await gateway.send({ method: 'HEAD', path: '/' })).status, 200);
  });
});
