import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createFingerprints } from '../../../../infra/gateway/branches/fingerprint.ts';
import type { DialectRequest, FinishedReply } from '../../../../infra/gateway/dialects/dialect.ts';
import { dialects } from '../../../../infra/gateway/dialects/index.ts';
import { errorStatus, GatewayError, type GatewayErrorKind } from '../../../../infra/gateway/gateway-error.ts';
import type { Delta } from '../../../../infra/gateway/model-call.ts';
import type { AssistantMessage } from '../../../../infra/kits/chat-tokens/index.ts';
import { assembleChat, assembleMessage, assembleResponse } from '../../../helpers/gateway/assemble-streams.ts';

interface Subject {
  /** Uses as much of the format as there is. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly assemble: (stream: string) => object;
  readonly keepAlive: RegExp;
}

const schema = { type: 'object', properties: { a: { type: 'string' } } };

const subjects: Readonly<Record<string, Subject>> = {
  'openai-chat': {
    assemble: assembleChat,
    keepAlive: /^: .+\n\n$/,
    body: {
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'x' }] },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'hm',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'run', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', name: 'run', content: 'ok' },
      ],
      tools: [{ type: 'function', function: { name: 'run', description: 'Runs.', parameters: schema } }],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 5,
      max_completion_tokens: 6,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      n: 1,
    },
  },
  'openai-responses': {
    assemble: assembleResponse,
    keepAlive: /^event: keepalive\ndata: {"type":"keepalive","sequence_number":\d+}\n\n$/,
    body: {
      model: 'm',
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'Ask no questions.' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x' }] },
        { type: 'reasoning', id: 'r', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { type: 'function_call', call_id: 'a', name: 'run', namespace: 'x', arguments: '{}' },
        { type: 'custom_tool_call', call_id: 'b', name: 'patch', input: '*** Begin' },
        { type: 'function_call_output', call_id: 'a', name: 'run', output: 'ok' },
        { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'ok' }] },
      ],
      tools: [
        { type: 'function', name: 'run', description: 'Runs.', parameters: schema },
        { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
        { type: 'namespace', name: 'agents', tools: [{ type: 'function', name: 'spawn', parameters: schema }] },
        { type: 'web_search' },
      ],
      stream: true,
      store: false,
      include: ['reasoning.encrypted_content'],
      max_output_tokens: 5,
      background: false,
      previous_response_id: null,
    },
  },
  'anthropic-messages': {
    assemble: assembleMessage,
    keepAlive: /^event: ping\ndata: {"type":"ping"}\n\n$/,
    body: {
      model: 'm',
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 's' },
            { type: 'redacted_thinking', data: 's' },
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', id: 'a', name: 'run', input: { a: [1, { b: 2 }] } },
          ],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'a', is_error: true, content: [{ type: 'text', text: 'no' }] }],
        },
        { role: 'system', content: 'Hurry.' },
      ],
      tools: [{ name: 'run', description: 'Runs.', input_schema: schema }],
      stream: true,
      max_tokens: 5,
    },
  },
};

type Path = readonly (string | number)[];

function pathsOf(value: unknown, at: Path = []): Path[] {
  const inside = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const keyOf = (key: string) => (Array.isArray(value) ? Number(key) : key);
  return [at, ...inside.flatMap(([key, member]) => pathsOf(member, [...at, keyOf(key)]))];
}

function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((member, at) => (at === key ? replaced(member, rest, by) : member));
  return { ...Object(value), [key]: replaced(Object(value)[key], rest, by) };
}

const deep = JSON.parse(`${'{"a":['.repeat(20_000)}1${']}'.repeat(20_000)}`);
const hostile = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom<unknown>(
    deep,
    [deep],
    { type: 'text' },
    { type: '__proto__' },
    { role: 'constructor' },
    Number.NaN,
    '\ud800',
  ),
  fc.constantFrom('user', 'assistant', 'tool', 'system', 'function_call', 'tool_result', 'item_reference', 'namespace'),
);

const word = fc.constantFrom('a', ' é ', '🦊', '{"x": 1}', '<b>', 'two\nlines', '"', '\\', '{}', '{"input": "y"}');
const argumentsText = fc.oneof(
  fc.constantFrom(
    '{}',
    '{"a": 1.0, "b": [true]}',
    '{"input": "*** Begin\\n"}',
    '{"input": 1}',
    '{"big": 12345678901234567890}',
  ),
  fc.dictionary(word, fc.jsonValue({ maxDepth: 2 })).map((value) => JSON.stringify(value)),
);
const spoken = fc.record({
  deltas: fc.array(fc.record({ kind: fc.constantFrom('text' as const, 'reasoning' as const), text: word }), {
    maxLength: 6,
  }),
  calls: fc.array(
    fc.record({ name: fc.constantFrom('run', 'patch', 'agents__spawn', 'unknown'), arguments: argumentsText }),
    { maxLength: 3 },
  ),
  finishReason: fc.constantFrom('stop' as const, 'length' as const),
});

function finishedOf({ deltas, calls, finishReason }: Spoken): FinishedReply {
  const textOf = (wanted: Delta['kind']) => deltas.map(({ kind, text }) => (kind === wanted ? text : '')).join('');
  const toolCalls = calls.map((call, index) => ({ id: `call_${index}`, ...call }));
  const reply: AssistantMessage = {
    role: 'assistant',
    text: textOf('text'),
    reasoning: textOf('reasoning'),
    toolCalls,
  };
  return { key: 'k', createdAt: 5_000, promptTokens: 7, reply, finishReason, sampledTokens: 3 };
}

type Spoken = typeof spoken extends fc.Arbitrary<infer Value> ? Value : never;

function streamOf(request: DialectRequest, said: Spoken): string {
  const reply = finishedOf(said);
  const writer = request.stream(reply);
  const start = writer.begin();
  const deltas = said.deltas.map((delta) => writer.delta(delta) + writer.keepAlive());
  return [start, ...deltas, writer.finish(reply)].join('');
}

for (const dialect of dialects) {
  const subject = subjects[dialect.name] ?? assert.fail(`no subject for ${dialect.name}`);

  describe(dialect.name, () => {
    it('reads any body or throws a GatewayError', () => {
      const paths = pathsOf(subject.body);
      assert.doesNotThrow(() => dialect.read(subject.body));
      const change = fc.record({ path: fc.constantFrom(...paths), by: hostile });
      let read = 0;
      fc.assert(
        fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
          const body = changes.reduce<unknown>((value, { path, by }) => replaced(value, path, by), subject.body);
          const conversationOf = (value: unknown) => dialect.read(value).conversation;
          for (const reader of [conversationOf, dialect.counting?.read ?? conversationOf]) {
            try {
              const conversation = reader(body);
              assert.equal(createFingerprints()(conversation).context.length, 32);
              read += 1;
            } catch (error) {
              assert.ok(error instanceof GatewayError, String(error));
              assert.match(error.kind, /^(malformed|unsupported)$/);
              assert.ok(error.message.length < 2_000);
            }
          }
        }),
        { numRuns: 1_000 },
      );
      assert.ok(read > 100, `only ${read} bodies were read`);
    });

    it('reads null as an absent field', () => {
      const conversationOf = (body: unknown) => dialect.read(body).conversation;
      const paths = pathsOf(subject.body).filter((path) => typeof path.at(-1) === 'string' && !isData(path));
      let absent = 0;
      for (const path of paths) {
        const without = attempt(() => conversationOf(replaced(subject.body, path, undefined)));
        if (without === null) continue;
        absent += 1;
        assert.deepEqual(
          attempt(() => conversationOf(replaced(subject.body, path, null))),
          without,
          path.join('.'),
        );
      }
      assert.ok(absent > 20, `only ${absent} fields may be absent`);
    });

    it('sends the same reply in a stream and as a whole', () => {
      const request = dialect.read(subject.body);
      fc.assert(
        fc.property(spoken, (said) => {
          const deltas = said.deltas.toSorted((left, right) => left.kind.localeCompare(right.kind));
          const assembled = subject.assemble(streamOf(request, { ...said, deltas }));
          assert.deepEqual(assembled, JSON.parse(JSON.stringify(request.whole(finishedOf(said)))));
        }),
      );
    });

    it('recognizes a streamed reply when a client echoes it, in any order of reasoning and text', () => {
      const request = dialect.read(subject.body);
      fc.assert(
        fc.property(spoken, (said) => {
          const assembled = subject.assemble(streamOf(request, said));
          const { messages } = dialect.read(continued(dialect.name, subject.body, assembled)).conversation;
          const echo = messages[request.conversation.messages.length];
          assert.ok(echo?.role === 'assistant');
          const { reply } = finishedOf(said);
          assert.deepEqual([echo.text, echo.reasoning], [reply.text, reply.reasoning]);
          assert.deepEqual(called(echo), called(reply));
        }),
      );
    });

    it('keeps a stream alive with an event that its clients notice', () => {
      const reply = finishedOf({ deltas: [], calls: [], finishReason: 'stop' });
      const writer = dialect.read(subject.body).stream(reply);
      writer.begin();
      assert.match(writer.keepAlive(), subject.keepAlive);
    });

    it('has an error body for every kind of error', () => {
      for (const kind of Object.keys(errorStatus) as GatewayErrorKind[]) {
        const { status, body } = dialect.error(new GatewayError(kind, 'why'));
        const { error } = JSON.parse(JSON.stringify(body));
        assert.deepEqual([status, error.message, typeof error.type], [errorStatus[kind], 'why', 'string']);
      }
    });
  });
}

/** Whether a value is data of a tool, in which null has a meaning. */
const isData = (path: Path): boolean =>
  path.slice(0, -1).some((key) => ['parameters', 'input_schema', 'input'].includes(String(key)) && path[0] !== key);

function attempt<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return null;
  }
}

const called = ({ toolCalls }: AssistantMessage) =>
  toolCalls.map((call) => [call.id, call.name, JSON.parse(call.arguments)]);

/** The next request of a client that got the reply. */
// biome-ignore lint/suspicious/noExplicitAny: tests read replies as clients do
function continued(name: string, body: any, whole: any): object {
  const next = { role: 'user', content: 'Continue.' };
  if (name === 'openai-responses') return { ...body, input: [...body.input, ...whole.output, next] };
  const said = name === 'openai-chat' ? whole.choices[0].message : { role: 'assistant', content: whole.content };
  return { ...body, messages: [...body.messages, said, next] };
}
