import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Tool } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { bash, readReply } from '../../../helpers/models/read-reply.ts';
import { type TinyFamily, tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';

const families = join(import.meta.dirname, '../../../fixtures/families');
const family = (vocabulary: Vocabulary, name: string): Promise<TinyFamily> =>
  tinyFamily(vocabulary, readFileSync(join(families, `${name}.jinja`), 'utf8'));

const count: Tool = {
  name: 'count',
  description: null,
  parameters: {
    type: 'object',
    properties: { to: { type: 'integer' }, by: { type: 'number' }, all: { type: 'boolean' } },
  },
};
const tools = [bash, count];

/** A sampled text, the status of each call, and the calls that the agent gets. */
type Row = readonly [said: string, statuses: readonly string[], calls?: readonly (readonly [string, string])[]];

function assertReads({ model }: TinyFamily, rows: readonly Row[]): void {
  for (const [said, statuses, calls = []] of rows) {
    const got = readReply(model, model.tokens.encode(said), { tools });
    assert.deepEqual([got.statuses, got.calls.map((call) => [call.name, call.arguments])], [statuses, calls], said);
    if (calls.length === 0) assert.equal(got.text, said.trim(), 'what is no call is text');
  }
}

describe('the XML function syntax', () => {
  const call = (name: string, ...parameters: readonly (readonly [string, string])[]): string =>
    `<tool_call>\n<function=${name}>\n${parameters.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join('')}</function>\n</tool_call>`;

  it('converts values to the types of the schema, with the digits that were sampled', async () => {
    await using tiny = await family('qwen', 'function-xml');
    assertReads(tiny, [
      [
        call('count', ['to', '7'], ['by', '1.0'], ['all', 'True']),
        ['ok'],
        [['count', '{"to": 7, "by": 1.0, "all": true}']],
      ],
      [call('bash', ['command', '7']), ['ok'], [['bash', '{"command": "7"}']]],
      [call('count'), ['ok'], [['count', '{}']]],
      [call('count', ['to', 'seven']), ['mistyped'], [['count', '{"to": "seven"}']]],
      [call('count', ['new', '[1]']), ['ok'], [['count', '{"new": [1]}']]],
      [call('count', ['constructor', 'x']), ['ok'], [['count', '{"constructor": "x"}']]],
      [call('fly', ['to', '7']), ['unknown-tool'], [['fly', '{"to": "7"}']]],
    ]);
  });

  it('reads calls whose delimiters the model forgot', async () => {
    await using tiny = await family('qwen', 'function-xml');
    const ls = [['bash', '{"command": "ls"}']] as const;
    assertReads(tiny, [
      ['<function=bash><parameter=command>ls</parameter></function></tool_call>', ['repaired'], ls],
      ['<tool_call><function=bash><parameter=command>ls</parameter></tool_call>', ['repaired'], ls],
      ['<tool_call><function=bash><parameter=command>ls</parameter></function>', ['repaired'], ls],
      ['<tool_call><function=bash><parameter=command>ls</function></tool_call>', ['repaired'], ls],
      [
        '<tool_call><function=count>\n<parameter=to>\n1\n<parameter=by>\n2\n</parameter>\n</function></tool_call>',
        ['repaired'],
        [['count', '{"to": 1, "by": 2}']],
      ],
    ]);
  });

  it('keeps code that looks like the syntax itself', async () => {
    await using tiny = await family('qwen', 'function-xml');
    const code = 'echo "</parameter>" "<parameter=x>" </function>\n\n';
    assertReads(tiny, [
      [call('bash', ['command', code]), ['ok'], [['bash', JSON.stringify({ command: code }).replace(':', ': ')]]],
    ]);
  });

  it('leaves malformed calls as text', async () => {
    await using tiny = await family('qwen', 'function-xml');
    assertReads(tiny, [
      ['<tool_call><function=bash><parameter=command>ls', ['unclosed']],
      ['<tool_call>{"name": "bash"}</tool_call>', ['malformed']],
      ['<tool_call><function=bash>ls</function></tool_call>', ['malformed']],
      ['<tool_call><function=></function></tool_call>', ['missing-name']],
      // Three replies of vLLM's issues 57699, 55497 and 55495: the `>` of a parameter is missing.
      ['<tool_call><function=count><parameter=ids: [1, 2]</parameter></function></tool_call>', ['malformed']],
      ['<tool_call><function=bash><parameter=command= echo a > b</parameter></function></tool_call>', ['malformed']],
      ['<tool_call><function=bash><parameter=command=</parameter></function></tool_call>', ['malformed']],
      ['<tool_call><function=bash><parameter=></parameter></function></tool_call>', ['malformed']],
      ['<function=bash>\n<parameter=command>\nls', ['unclosed']],
      ['<function=other>\n<parameter=command>\nls', []],
      ['Write <function=f>x</function>.', []],
      ['Write <function=bash>', []],
    ]);
  });
});

it('the GLM parser reads typed values and calls without arguments, and reports missing pieces', async () => {
  await using tiny = await family('glm', 'glm');
  assertReads(tiny, [
    [
      '<tool_call>count\n<arg_key>to</arg_key>\n<arg_value>7</arg_value>\n</tool_call>',
      ['ok'],
      [['count', '{"to": 7}']],
    ],
    ['<tool_call>count</tool_call>', ['ok'], [['count', '{}']]],
    [
      '<tool_call>bash<arg_key>command</arg_key><arg_value> 7\n</arg_value></tool_call>',
      ['ok'],
      [['bash', '{"command": " 7\\n"}']],
    ],
    [
      '<tool_call>count<arg_key>to</arg_key><arg_value>x</arg_value></tool_call>',
      ['mistyped'],
      [['count', '{"to": "x"}']],
    ],
    ['<tool_call>fly</tool_call>', ['unknown-tool'], [['fly', '{}']]],
    ['<tool_call>bash<arg_key>command</arg_key></tool_call>', ['malformed']],
    ['<tool_call>bash<arg_key>command</arg_key>x<arg_value>ls</arg_value></tool_call>', ['malformed']],
    ['<tool_call>run ls now</tool_call>', ['malformed']],
    ['<tool_call></tool_call>', ['missing-name']],
    ['<tool_call>bash', ['unclosed']],
  ]);
});

it('the DeepSeek parser reads calls of V3 and V3.1, and reasoning that a call ends', async () => {
  await using tiny = await family('deepseek', 'deepseek');
  const all = (body: string): string =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>${body}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`;
  assertReads(tiny, [
    [all('count<｜tool▁sep｜>{"to": 1.0}'), ['ok'], [['count', '{"to": 1.0}']]],
    [all('function<｜tool▁sep｜>count\n```json\n{"to": 1.0}\n```'), ['ok'], [['count', '{"to": 1.0}']]],
    [all('count<｜tool▁sep｜>'), ['ok'], [['count', '{}']]],
  ]);
  const faults = (body: string): readonly string[] =>
    readReply(tiny.model, tiny.model.tokens.encode(all(body)), { tools }).statuses;
  assert.deepEqual(faults('count'), ['malformed']);
  assert.deepEqual(faults('count<｜tool▁sep｜>{"to": '), ['invalid-json']);
  assert.deepEqual(faults('count<｜tool▁sep｜>[1]'), ['invalid-arguments']);
  assert.deepEqual(faults('<｜tool▁sep｜>{}'), ['missing-name']);
  const said = `hm${all('count<｜tool▁sep｜>{}')}`;
  const got = readReply(tiny.model, tiny.model.tokens.encode(said), { tools, prompt: '<｜Assistant｜><think>\n' });
  assert.deepEqual([got.reasoning, got.statuses, got.text], ['hm', ['ok'], '']);
});

it('the Kimi parser keeps the sampled call id', async () => {
  await using tiny = await family('kimi', 'kimi');
  const all = (id: string, args: string): string =>
    `<|tool_calls_section_begin|><|tool_call_begin|>${id}<|tool_call_argument_begin|>${args}<|tool_call_end|><|tool_calls_section_end|>`;
  const read = (said: string) => readReply(tiny.model, tiny.model.tokens.encode(said), { tools }).events;
  const [event] = read(all('functions.count:12', '{"to": 1}'));
  assert.ok(event?.kind === 'call');
  assert.deepEqual(
    [event.call.id, event.call.name, event.call.arguments],
    ['functions.count:12', 'count', '{"to": 1}'],
  );
  for (const [id, name] of [
    ['count:0', 'count'],
    ['functions.a.b:0', 'a.b'],
    ['count', 'count'],
  ] as const) {
    const [other] = read(all(id, ''));
    assert.deepEqual(other?.kind === 'call' && [other.call.name, other.call.arguments], [name, '{}']);
  }
  const [broken] = read('<|tool_call_begin|>functions.count:0<|tool_call_end|>');
  assert.deepEqual(broken?.kind === 'faulty-call' && broken.call.status, 'malformed');
});

describe('the gpt-oss parser', () => {
  const read = ({ model }: TinyFamily, said: string) =>
    readReply(model, model.tokens.encode(said), { tools, prompt: '<|start|>assistant' });

  it('reads the channels: analysis, commentary to a tool or to the user, final', async () => {
    await using tiny = await family('gptoss', 'harmony');
    const got = read(
      tiny,
      '<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>commentary<|message|>I count.<|end|>' +
        '<|start|>assistant<|channel|>analysis<|message|>then<|end|>' +
        '<|start|>assistant<|channel|>commentary to=functions.count <|constrain|>json<|message|>{"to": 1.0}<|call|>',
    );
    assert.deepEqual(
      [got.reasoning, got.text, got.calls],
      ['why\n\nthen', 'I count.', [{ name: 'count', arguments: '{"to": 1.0}' }]],
    );
    const final = read(tiny, '<|channel|>final<|message|>Done.<|return|>');
    assert.deepEqual([final.text, final.reasoning], ['Done.', '']);
  });

  it('reads a tool name before the channel, and reports one that was not offered', async () => {
    await using tiny = await family('gptoss', 'harmony');
    const before = read(tiny, ' to=functions.count<|channel|>commentary json<|message|>{}');
    assert.deepEqual(before.calls, [{ name: 'count', arguments: '{}' }]);
    const other = read(tiny, '<|channel|>commentary to=browser.open<|message|>{}<|call|>');
    assert.deepEqual([other.statuses, other.calls], [['unknown-tool'], [{ name: 'browser.open', arguments: '{}' }]]);
  });

  it('reports the problem of a call, and shows a header without a message', async () => {
    await using tiny = await family('gptoss', 'harmony');
    const call = (body: string): string => `<|channel|>commentary to=functions.count<|message|>${body}`;
    for (const [said, status] of [
      [call('{"to": '), 'unclosed'],
      [call('{"to": <|call|>'), 'invalid-json'],
      [call('print(1)<|call|>'), 'invalid-json'],
      [call('[1]<|call|>'), 'invalid-arguments'],
    ] as const) {
      const got = read(tiny, said);
      assert.deepEqual([got.statuses, got.text], [[status], `<|start|>assistant${said}`.trimEnd()]);
    }
    assert.equal(read(tiny, ' I just reply').text, '<|start|>assistant I just reply');
  });
});

describe('the Llama parser', () => {
  it('reads calls in JSON, with or without a tag, and several of them', async () => {
    await using tiny = await family('llama', 'llama');
    assertReads(tiny, [
      ['{"name": "count", "parameters": {"to": 1.0}}', ['ok'], [['count', '{"to": 1.0}']]],
      ['<|python_tag|>{"name": "count", "arguments": {}}', ['ok'], [['count', '{}']]],
      [
        '{"name": "count", "parameters": {"a": "}"}}; {"type": "function", "name": "bash", "parameters": {}}',
        ['ok', 'ok'],
        [
          ['count', '{"a": "}"}'],
          ['bash', '{}'],
        ],
      ],
      ['{"name": "fly", "parameters": {}}', ['unknown-tool'], [['fly', '{}']]],
    ]);
  });

  it('leaves an answer in JSON as text', async () => {
    await using tiny = await family('llama', 'llama');
    assertReads(tiny, [
      ['{"answer": 42}', []],
      ['{"name": "Ann", "age": 3}', []],
      ['{not json}', []],
      ['Like {"name": "count", "parameters": {}}', []],
      ['{"answer": ', []],
    ]);
  });

  it('reports the problem of a call', async () => {
    await using tiny = await family('llama', 'llama');
    assertReads(tiny, [
      ['{"name": "count", "parameters": {"to"', ['unclosed']],
      ['{"name": "count", "parameters": {to}}', ['invalid-json']],
      ['{"name": "count", "parameters": "x"}', ['invalid-arguments']],
      ['<|python_tag|>print(1)', ['malformed']],
      ['<|python_tag|>{"answer": 42}', ['malformed']],
    ]);
  });
});

describe('a model without a tool-call syntax', () => {
  const template = "{% for m in messages %}{{ m.role + m.content + '<|im_end|>' }}{% endfor %}";
  const said = 'I look.\n```bash\nls -la\ncat a\n```\nThen:\n```python\n1\n```\n';

  it('calls the one tool that takes a command with a fenced block, which stays text', async () => {
    await using tiny = await tinyFamily('qwen', template);
    const got = readReply(tiny.model, tiny.model.tokens.encode(said), { tools });
    assert.deepEqual(got.calls, [{ name: 'bash', arguments: '{"command":"ls -la\\ncat a"}' }]);
    assert.equal(got.text, said.trim());
    for (const shell of ['sh', 'shell', 'zsh', 'mswea_bash_command']) {
      const blocks = `\`\`\`${shell}\nls\n\`\`\`\n`.repeat(2);
      const { calls } = readReply(tiny.model, tiny.model.tokens.encode(blocks), { tools });
      assert.deepEqual(calls, Array(2).fill({ name: 'bash', arguments: '{"command":"ls"}' }), shell);
    }
    const unclosed = readReply(tiny.model, tiny.model.tokens.encode('```sh\nls'), { tools });
    assert.deepEqual([unclosed.statuses, unclosed.text], [['unclosed'], '```sh\nls']);
  });

  it('replies with text only where no tool takes a command, or two do', async () => {
    await using tiny = await tinyFamily('qwen', template);
    for (const offered of [[count], [bash, { ...bash, name: 'shell' }], []]) {
      const got = readReply(tiny.model, tiny.model.tokens.encode(said), { tools: offered });
      assert.deepEqual([got.calls, got.text], [[], said.trim()]);
    }
  });
});

it('`<think>` stays text for a template without reasoning, so that nothing is lost when it is rendered again', async () => {
  const template = "{{ '<tool_call>' if tools }}{% for m in messages %}{{ m.content }}{{ m.arguments }}{% endfor %}";
  await using tiny = await tinyFamily('qwen', template);
  const got = readReply(tiny.model, tiny.model.tokens.encode('<think>why</think>so'));
  assert.deepEqual([got.reasoning, got.text], ['', '<think>why</think>so']);
});
