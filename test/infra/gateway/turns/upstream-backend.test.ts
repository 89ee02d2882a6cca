import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Upstreams } from '../../../../infra/gateway/upstream/upstreams.ts';
import type { Trace } from '../../../../workflows/contracts/trace.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { type Answer, type ScriptedServer, startScriptedServer } from '../../../helpers/engine/scripted-server.ts';
import { chunksOf, openSession, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';

const upstream = { name: 'others', model: 'large' };
const tools = [{ type: 'function', function: { name: 'bash', parameters: { type: 'object' } } }];
const callLs = { id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } };

const said = (message: object, finish = 'stop'): Answer => ({
  status: 200,
  json: {
    model: 'large-1',
    choices: [{ message, finish_reason: finish }],
    usage: { prompt_tokens: 40, completion_tokens: 7 },
  },
});

interface Stage {
  readonly gateway: TestGateway;
  readonly server: ScriptedServer;
  /** Bodies that the upstream model was sent. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read requests as servers do
  asked(): any[];
}

/** A gateway whose engine must not be asked, and an upstream model that gives these answers. */
async function withUpstream(
  answer: (index: number) => Answer | Promise<Answer>,
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  let next = 0;
  const server = await startScriptedServer({ 'POST /v1/chat/completions': () => answer(next++) });
  const upstreams: Upstreams = {
    find: async (name) => ({
      name,
      url: `${server.url}/v1`,
      model: 'large',
      apiKey: 'sk-secret',
      contextLength: 9000,
      maxTokensField: 'max_tokens',
      returnsReasoning: false,
      readsImages: false,
      namesSession: false,
    }),
  };
  const engine = createScriptedEngine({ script: () => assert.fail('the engine is not asked') });
  try {
    await using gateway = await startTestGateway(engine, { upstreams, engineGraceMs: 0 });
    await work({ gateway, server, asked: () => server.seen.map(({ body }) => body) });
  } finally {
    await server.close();
  }
}

describe('a session of an upstream model', () => {
  it('is answered by the model, and sealed without a token to train on', async () => {
    const answers = [said({ content: 'I look.', tool_calls: [callLs] }, 'tool_calls'), said({ content: 'Done.' })];
    await withUpstream(
      (index) => answers[index] ?? assert.fail(),
      async ({ gateway, asked }) => {
        const secret = await gateway.open('s.1', { upstream });
        const messages: object[] = [{ role: 'user', content: 'Fix it.' }];
        const first = await gateway.chat(secret, { model: 'm', messages, tools, temperature: 0 });
        const { message, finish_reason: reason } = first.json.choices[0];
        assert.deepEqual([first.status, reason, message.content], [200, 'tool_calls', 'I look.']);
        assert.deepEqual(message.tool_calls, [callLs]);
        const { prompt_tokens, completion_tokens } = first.json.usage;
        assert.deepEqual([prompt_tokens, completion_tokens], [40, 7]);
        messages.push(message, { role: 'tool', tool_call_id: 'c1', content: 'a.js' });
        assert.equal((await gateway.chat(secret, { messages, tools })).json.choices[0].message.content, 'Done.');

        // The run decides the sampling parameters, not the agent.
        assert.deepEqual([asked()[0].temperature, asked()[0].max_tokens], [undefined, 500]);
        assert.equal(asked()[1].messages.length, 3);
        const summary = await gateway.control.seal('s.1');
        const { turns, segments, sampledTokens, promptTokens, minVersion } = summary;
        assert.deepEqual([turns, segments, sampledTokens, promptTokens, minVersion], [2, 0, 14, 80, null]);
        assert.deepEqual(summary.upstream, upstream);
        assertTrace(await gateway.traceOf(summary));
      },
    );
  });

  it('accepts any dialect', async () => {
    await withUpstream(
      () => said({ content: 'I look.', reasoning_content: 'hm', tool_calls: [callLs] }, 'tool_calls'),
      async ({ gateway, asked }) => {
        const secret = await gateway.open('s.1', { upstream });
        const anthropic = await gateway.post('/v1/messages', secret, {
          model: 'm',
          max_tokens: 100,
          system: 'Be brief.',
          messages: [{ role: 'user', content: 'Fix it.' }],
          tools: [{ name: 'bash', input_schema: { type: 'object' } }],
        });
        const parts = anthropic.json.content.map(({ type }: { type: string }) => type);
        assert.deepEqual([anthropic.status, parts.at(-1)], [200, 'tool_use']);
        assert.deepEqual([anthropic.json.usage.input_tokens, anthropic.json.usage.output_tokens], [40, 7]);
        const responses = await gateway.post('/v1/responses', secret, {
          model: 'm',
          input: 'Fix that.',
          instructions: 'Be brief.',
          tools: [{ type: 'function', name: 'bash', parameters: { type: 'object' } }],
        });
        assert.deepEqual([responses.status, responses.json.output.at(-1).name], [200, 'bash']);
        const streamed = await gateway.chat(secret, {
          messages: [{ role: 'user', content: 'Say it.' }],
          tools,
          stream: true,
          stream_options: { include_usage: true },
        });
        const chunks = chunksOf(streamed);
        assert.equal(chunks.at(-1).usage.prompt_tokens, 40);
        assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), 'I look.');
        for (const { messages, tools: offered, stream } of asked()) {
          assert.deepEqual([messages.at(-1).role, offered[0].function.name, stream], ['user', 'bash', undefined]);
        }
        const counted = await gateway.post('/v1/messages/count_tokens', secret, {
          model: 'm',
          messages: [{ role: 'user', content: 'x' }],
        });
        assert.deepEqual([counted.status, asked().length], [400, 3]);
      },
    );
  });

  it('answers a retried request from the journal, also after a restart, without a second call', async () => {
    await withUpstream(
      (index) => said({ content: `answer ${index}` }),
      async ({ gateway, asked }) => {
        const secret = await gateway.open('s.1', { upstream });
        const ask = () =>
          gateway.chatAgain(secret, { messages: [{ role: 'user', content: 'x' }] }, { 'x-temper-request': 'r-1' });
        const [one, two] = await Promise.all([ask(), ask()]);
        assert.equal(one.text, two.text);
        await gateway.restart();
        assert.equal((await ask()).text, one.text);
        assert.equal(asked().length, 1);
        assert.equal((await gateway.control.seal('s.1')).turns, 1);
      },
    );
  });

  it('enforces the turn limit', async () => {
    await withUpstream(
      () => said({ content: 'y' }),
      async ({ gateway, asked }) => {
        const secret = await gateway.open('s.1', { upstream, maxTurns: 1 });
        const ask = (text: string) => gateway.chat(secret, { messages: [{ role: 'user', content: text }] });
        assert.equal((await ask('one')).status, 200);
        assert.deepEqual([(await ask('two')).json.error.code, asked().length], ['turn_limit', 1]);
        assert.equal((await gateway.control.seal('s.1')).turnLimit, true);
      },
    );
  });

  it('distinguishes a context overflow from a failing model, with the codes that agents know', async () => {
    const refusals: readonly Answer[] = [
      { status: 400, json: { error: { code: 'context_length_exceeded', message: 'maximum 4096, got 5000' } } },
      { status: 401, json: { error: { message: 'wrong key sk-secret' } } },
      { status: 503, json: { error: { message: 'down' } } },
    ];
    await withUpstream(
      (index) => refusals[index] ?? assert.fail(),
      async ({ gateway }) => {
        const secret = await gateway.open('s.1', { upstream });
        const codes: string[] = [];
        for (const text of ['one', 'two', 'three']) {
          const reply = await gateway.chat(secret, { messages: [{ role: 'user', content: text }] });
          assert.doesNotMatch(reply.text, /sk-secret/);
          codes.push(`${reply.status} ${reply.json.error.code}`);
        }
        assert.deepEqual(codes, ['400 context_length_exceeded', '502 engine_invalid', '503 engine_unavailable']);
        const summary = await gateway.control.seal('s.1');
        assert.deepEqual([summary.contextOverflow, summary.engineFailures, summary.turns], [true, 2, 0]);
        assert.match(
          JSON.stringify(gateway.events.map((event) => ('cause' in event ? String(event.cause) : ''))),
          /401/,
        );
      },
    );
  });

  it('writes the API key into no journal, no trace and no event', async () => {
    await withUpstream(
      () => said({ content: 'y' }),
      async ({ gateway, server }) => {
        const secret = await gateway.open('s.1', { upstream });
        await gateway.chat(secret, { messages: [{ role: 'user', content: 'x' }] });
        assert.equal(server.seen[0]?.authorization, 'Bearer sk-secret');
        const written: string[] = [JSON.stringify(gateway.events)];
        const { journalDir } = gateway.options;
        for (const file of await readdir(journalDir)) written.push(await readFile(join(journalDir, file), 'utf8'));
        written.push(JSON.stringify(await gateway.traceOf(await gateway.control.seal('s.1'))));
        assert.ok(written.length >= 3);
        assert.doesNotMatch(written.join('\n'), /sk-secret/);
      },
    );
  });

  it('reports the model behind a name and its context length', async () => {
    await withUpstream(
      () => assert.fail(),
      async ({ gateway }) => {
        assert.deepEqual(await gateway.control.upstream('others'), upstream);
        const opened = await gateway.control.open({ ...openSession('s.1'), upstream });
        assert.equal(opened.contextLength, 9000);
      },
    );
    // Without the file no upstream model is configured.
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => assert.fail() }));
    await assert.rejects(gateway.control.upstream('others'), {
      type: 'UnknownUpstream',
      message: /\(none\), got others/,
    });
    await assert.rejects(gateway.open('s.2', { upstream }), { type: 'UnknownUpstream' });
    assert.equal(await gateway.control.status('s.2'), null);
  });

  it('does not continue with another model', async () => {
    await withUpstream(
      () => assert.fail('it is not asked'),
      async ({ gateway }) => {
        const secret = await gateway.open('s.1', { upstream: { ...upstream, model: 'small' } });
        const reply = await gateway.chat(secret, { messages: [{ role: 'user', content: 'x' }] });
        assert.deepEqual([reply.status, reply.json.error.code], [502, 'engine_invalid']);
        assert.match(reply.json.error.message, /began with the model small, but upstreams\.json now names large/);
      },
    );
  });
});

function assertTrace({ turns, segments, branches = [], maskedTurns, transcript, counts }: Trace): void {
  assert.deepEqual(segments, []);
  assert.deepEqual(
    turns.map(({ parent, sampledIds, promptLength, upstream: by }) => [parent, sampledIds, promptLength, by]),
    [
      [null, [], 40, { model: 'large-1', sampledTokens: 7 }],
      [0, [], 40, { model: 'large-1', sampledTokens: 7 }],
    ],
  );
  assert.deepEqual(
    maskedTurns.map(({ reason }) => reason),
    ['upstream', 'upstream'],
  );
  assert.deepEqual(
    branches.map(({ kind, turns: of, tokens, segment }) => [kind, of, tokens, segment]),
    [['main', 2, 47, null]],
  );
  assert.deepEqual([counts?.droppedTokens, counts?.forks], [0, 0]);
  assert.deepEqual(
    transcript.map(({ role, text, turn }) => [role, text, turn]),
    [
      ['user', 'Fix it.', undefined],
      ['assistant', 'I look.', 0],
      ['tool', 'a.js', undefined],
      ['assistant', 'Done.', 1],
    ],
  );
}
