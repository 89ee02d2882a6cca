import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Tool } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { bash, type ReadOptions, readReply } from '../../../helpers/models/read-reply.ts';
import { type TinyFamily, tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';

const fixtures = join(import.meta.dirname, '../../../fixtures');
const load = (vocabulary: Vocabulary, path: string): Promise<TinyFamily> =>
  tinyFamily(vocabulary, readFileSync(join(fixtures, path), 'utf8'));

const write: Tool = {
  name: 'write_file',
  description: null,
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' }, content: { type: 'string' } },
    required: ['path', 'content'],
  },
};
const tools = [bash, write];

const read = ({ model }: TinyFamily, said: string, options: ReadOptions = {}) => {
  const got = readReply(model, model.tokens.encode(said), { tools, ...options });
  return {
    ...got,
    given: got.calls.map((call): readonly [string, unknown] => [call.name, JSON.parse(call.arguments)]),
  };
};

type Given = readonly (readonly [name: string, args: object])[];

const xml = (name: string, args: Readonly<Record<string, string>>): string => {
  const parameters = Object.entries(args).map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`);
  return `<tool_call>\n<function=${name}>\n${parameters.join('')}</function>\n</tool_call>`;
};

describe('a value in the XML function syntax', () => {
  const example = xml('bash', { command: 'rm -rf x' });
  const contents = [
    'A block ends with </tool_call> on its own.\nMore.',
    'A block begins with <tool_call> on its own.',
    `An example:\n${example}\nDone.`,
    `Two examples:\n${example}\nand\n${example}\nDone.`,
    `An example of itself:\n${xml('write_file', { path: 'a', content: 'b' })}`,
    'An end:\n</parameter>\n</function>\n</tool_call>\nand more',
    '<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>',
    '<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>',
    'a </parameter> b <parameter=path> c </function> d',
    '</think> <think>',
  ];

  it('may hold delimiters and examples of calls, none of which is given', async () => {
    await using tiny = await load('qwen', 'families/function-xml.jinja');
    for (const content of contents) {
      const args = { path: '/tmp/a.md', content };
      const got = read(tiny, `I write.\n${xml('write_file', args)}`);
      assert.deepEqual([got.given, got.text, got.statuses], [[['write_file', args]], 'I write.', ['ok']], content);
    }
  });

  it('may mention parameters that the tool has or lacks', async () => {
    await using tiny = await load('qwen', 'families/function-xml.jinja');
    for (const [path, content] of [
      ['<parameter=x>', '</tool_call>'],
      ['a', 'b</parameter><parameter=path>c'],
      ['a', 'b</parameter><parameter=other>c'],
    ] as const) {
      const got = read(tiny, xml('write_file', { path, content }));
      assert.deepEqual([got.given, got.statuses], [[['write_file', { path, content }]], ['ok']], content);
    }
  });

  it('may follow an opening without a call, which is counted', async () => {
    await using tiny = await load('qwen', 'families/function-xml.jinja');
    for (const before of ['<tool_call>\n', 'I use <tool_call> now.\n']) {
      const got = read(tiny, before + xml('bash', { command: 'ls' }));
      assert.deepEqual([got.given, got.statuses], [[['bash', { command: 'ls' }]], ['unclosed', 'ok']], before);
    }
  });

  it('leaves the call as text where its end is in doubt', async () => {
    await using tiny = await load('qwen', 'families/function-xml.jinja');
    const end = '\n</parameter>\n</function>\n</tool_call>\n';
    const rows: readonly (readonly [said: string, status: string])[] = [
      [xml('bash', { command: `a${end}b` }) + xml('bash', { command: 'ls' }), 'ambiguous'],
      [`<tool_call>\n<function=write_file>\n<parameter=content>\n${example}\nand then`, 'malformed'],
      [xml('bash', { command: `<tool_call>\n<function=bash>\n<parameter=command>\nls` }), 'malformed'],
      [xml('bash', { command: `${example}\n${example}` }), 'ambiguous'],
      [xml('write_file', { content: 'a\n<parameter=path>\nb' }), 'malformed'],
      [xml('bash', { command: '</function><tool_call><function=bash><parameter=x>' }), 'malformed'],
      [xml('write_file', { path: 'a', content: 'b\n</parameter>\n<parameter=path>\nc' }), 'malformed'],
    ];
    for (const [said, status] of rows) {
      const got = read(tiny, said);
      assert.deepEqual([got.given, got.statuses, got.text], [[], [status], said.trim()], said);
    }
  });
});

describe('a call beside one that is in doubt', () => {
  const glm = (...values: readonly string[]): string =>
    values
      .map((value) => `<tool_call>bash<arg_key>command</arg_key><arg_value>${value}</arg_value></tool_call>`)
      .join('');
  const rows: readonly (readonly [Vocabulary, string, string])[] = [
    ['glm', 'families/glm.jinja', glm('</arg_value></tool_call><tool_call><arg_key>')],
    ['glm', 'families/glm.jinja', `${glm('ls')}<tool_call>bash<arg_key>command<arg_value>ls</arg_value></tool_call>`],
    ['glm', 'families/glm.jinja', glm('ls', 'a</arg_value><arg_key>')],
    [
      'qwen',
      'families/function-xml.jinja',
      xml('bash', { command: 'ls' }) + xml('bash', { command: 'a\n</parameter>\n<parameter=command>' }),
    ],
  ];

  it('is not given, as it may be a part of the value of the other one', async () => {
    for (const [vocabulary, path, said] of rows) {
      await using tiny = await load(vocabulary, path);
      const got = read(tiny, said);
      assert.deepEqual([got.given, got.statuses, got.text], [[], ['ambiguous'], said], said);
    }
  });

  it('is given if the other one is cut off at the end of the reply', async () => {
    await using tiny = await load('glm', 'families/glm.jinja');
    const got = read(tiny, `${glm('ls')}<tool_call>bash<arg_key>com`);
    assert.deepEqual([got.given, got.statuses], [[['bash', { command: 'ls' }]], ['ok', 'unclosed']]);
  });
});

describe('a repair', () => {
  const cases: readonly (readonly [Vocabulary, string, string, Given])[] = [
    [
      'qwen',
      'families/function-xml.jinja',
      '<tool_call>\n<function="bash">\n<parameter="command">\nls\n</parameter>\n</function>\n</tool_call>',
      [['bash', { command: 'ls' }]],
    ],
    [
      'qwen',
      'families/function-xml.jinja',
      "<tool_call>\n<function=bash>\n<parameter='command'>\nls\n</parameter>\n</function>\n</tool_call>",
      [['bash', { command: 'ls' }]],
    ],
    [
      'qwen',
      'hermes/chat_template.jinja',
      '<tool_call>{"name": "bash", "parameters": {"command": "ls"}}</tool_call>',
      [['bash', { command: 'ls' }]],
    ],
    [
      'qwen',
      'hermes/chat_template.jinja',
      '<tool_call>{"id": 1, "name": "bash", "arguments": {"command": "ls"}}</tool_call>',
      [['bash', { command: 'ls' }]],
    ],
  ];

  it('of a key or a name gives the call that was sampled, and is counted', async () => {
    for (const [vocabulary, path, said, given] of cases) {
      await using tiny = await load(vocabulary, path);
      const got = read(tiny, said);
      assert.deepEqual([got.given, got.statuses], [given, ['repaired']], said);
    }
  });

  it('makes no arguments out of other keys', async () => {
    await using tiny = await load('qwen', 'hermes/chat_template.jinja');
    const got = read(tiny, '<tool_call>{"name": "bash", "command": "ls"}</tool_call>');
    assert.deepEqual([got.given, got.statuses], [[], ['invalid-arguments']]);
  });
});

describe('a call in reasoning that never ends', () => {
  const rows: readonly (readonly [Vocabulary, string, string])[] = [
    [
      'qwen',
      'hermes/chat_template.jinja',
      '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
    ],
    ['qwen', 'families/function-xml.jinja', xml('bash', { command: 'ls' })],
    ['glm', 'families/glm.jinja', '<tool_call>bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>'],
    [
      'kimi',
      'families/kimi.jinja',
      '<|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>',
    ],
    [
      'deepseek',
      'families/deepseek.jinja',
      '<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜>',
    ],
  ];

  it('ends it if it is the last of the reply, and is counted as repaired', async () => {
    for (const [vocabulary, path, call] of rows) {
      await using tiny = await load(vocabulary, path);
      const got = read(tiny, `I look at the files.\n${call}`, { prompt: '<think>\n' });
      assert.deepEqual(
        [got.reasoning, got.given, got.statuses, got.text],
        ['I look at the files.', [['bash', { command: 'ls' }]], ['repaired'], ''],
        path,
      );
    }
  });

  it('is counted, and not given, if more follows, if it is not complete or if its tool was not offered', async () => {
    for (const [vocabulary, path, call] of rows) {
      await using tiny = await load(vocabulary, path);
      for (const said of [`why ${call} or not`, `why ${call.slice(0, -20)}`, `why ${call.replace('bash', 'fly')}`]) {
        const got = read(tiny, said, { prompt: '<think>\n' });
        assert.deepEqual([got.given, got.statuses, got.text], [[], ['unclosed'], ''], said);
      }
    }
  });

  it('is a thought if the reasoning ends later', async () => {
    for (const [vocabulary, path, call] of rows) {
      await using tiny = await load(vocabulary, path);
      const got = read(tiny, `maybe ${call}</think>No.`, { prompt: '<think>\n' });
      assert.deepEqual([got.given, got.statuses, got.text], [[], [], 'No.'], path);
    }
  });
});

describe('a command in a fenced block', () => {
  const template = "{% for m in messages %}{{ m.role + m.content + '<|im_end|>' }}{% endfor %}";
  const heredoc = "cat > a.md <<'EOF'\n```\nls\n```\n```bash\nrm -rf x\n```\nEOF\ncat a.md";
  const nested = 'echo "\n```python\n1\n```\n"';

  it('may hold fences in a heredoc and blocks of another language', async () => {
    await using tiny = await tinyFamily('qwen', template);
    for (const command of [heredoc, nested, 'cat <<-A <<"B"\n\tA\n```\nB', 'echo $((1 << 2)) <<< "```"']) {
      const got = read(tiny, `I do.\n\`\`\`bash\n${command}\n\`\`\`\nDone.`, { tools: [bash] });
      assert.deepEqual([got.given, got.statuses], [[['bash', { command }]], ['ok']], command);
    }
    const longer = read(tiny, '````bash\necho "\n```\n"\n````', { tools: [bash] });
    assert.deepEqual(longer.given, [['bash', { command: 'echo "\n```\n"' }]]);
  });

  it('is not given where a heredoc leaves its end open', async () => {
    await using tiny = await tinyFamily('qwen', template);
    const got = read(tiny, "```bash\ncat > a.md <<'EOF'\n```\nls\n```\n", { tools: [bash] });
    assert.deepEqual([got.given, got.statuses], [[], ['ambiguous']]);
  });

  it('is given where the signs of a heredoc begin none', async () => {
    await using tiny = await tinyFamily('qwen', template);
    const commands = ["sed -i 's/x/std::cout << y/' a.cpp", 'python3 -c "print(1 << n)"', "grep -n '<<EOF' a.sh"];
    for (const command of commands) {
      for (const more of ['', 'Then:\n```python\nprint(1)\n```\n']) {
        const got = read(tiny, `\`\`\`bash\n${command}\n\`\`\`\n${more}`, { tools: [bash] });
        assert.deepEqual([got.given, got.statuses], [[['bash', { command }]], ['ok']], command);
      }
    }
  });

  it('may name the delimiter that ends reasoning', async () => {
    await using tiny = await tinyFamily('qwen', `${template}{# </think> #}`);
    const command = "grep -rn '</think>' src";
    for (const thought of ['', '<think>\nplan</think>\n']) {
      const got = read(tiny, `${thought}\`\`\`bash\n${command}\n\`\`\``, { tools: [bash] });
      assert.deepEqual([got.given, got.statuses], [[['bash', { command }]], ['ok']], thought);
    }
  });

  it('is a thought before the end of reasoning, and counted in reasoning that never ends', async () => {
    await using tiny = await tinyFamily('qwen', `${template}{# </think> #}`);
    const block = '```bash\nls\n```\n';
    const thought = read(tiny, `<think>\n${block}</think>So:\n${block}`, { tools: [bash] });
    assert.deepEqual([thought.given.length, thought.statuses], [1, ['ok']]);
    const open = read(tiny, `<think>\n${block}`, { tools: [bash] });
    assert.deepEqual([open.given, open.statuses], [[], ['unclosed']]);
  });
});
