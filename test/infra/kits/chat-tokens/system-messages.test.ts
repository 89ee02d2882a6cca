import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Message } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { loadModel } from '../../../../infra/kits/chat-tokens/load-model.ts';
import { renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { writeTinyModel } from '../../../helpers/models/tiny-model.ts';

const body = (role: string) => `{{- '<' + ${role} + '>' + m.content + '</>' }}`;
const raise = (why: string) => `{{- raise_exception('${why}') }}`;
const loop = (inside: string) => `{%- for m in messages %}${inside}{%- endfor %}`;

/** Templates that treat system messages as published ones do. */
const templates = {
  'prints each in its place': loop(body('m.role')),
  'takes one at the start and needs a user message': loop(
    `{%- if m.role == 'system' and not loop.first %}${raise('System message must be at the beginning.')}{%- endif %}${body('m.role')}`,
  )
    .concat("{%- set ns = namespace(user=false) %}{%- for m in messages %}{%- if m.role == 'user' %}")
    .concat(
      `{%- set ns.user = true %}{%- endif %}{%- endfor %}{%- if not ns.user %}${raise('No user query')}{%- endif %}`,
    ),
  'leaves out each but the first': loop(
    `{%- if m.role != 'system' or loop.first %}${body("'developer' if m.role == 'system' else m.role")}{%- endif %}`,
  ),
  'moves each to the start': `{%- for m in messages %}{%- if m.role == 'system' %}${body('m.role')}{%- endif %}{%- endfor %}${loop(`{%- if m.role != 'system' %}${body('m.role')}{%- endif %}`)}`,
  'takes none, and no user message after another': loop(
    `{%- if m.role == 'system' %}${raise('System role not supported')}{%- endif %}`,
  ).concat(
    loop(
      `{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}${raise('roles must alternate')}{%- endif %}${body('m.role')}`,
    ),
  ),
} as const;

const reply = (text: string): Message => ({ role: 'assistant', text, reasoning: '', toolCalls: [] });

describe('system messages', () => {
  for (const [what, template] of Object.entries(templates)) {
    it(`are all printed, in their order, by a template that ${what}`, async () => {
      await using dir = await writeTinyModel(template);
      const model = await loadModel(dir.dir);
      const start = fc.array(fc.constantFrom<'system'>('system'), { maxLength: 3 });
      const turn = fc
        .tuple(
          fc.array(fc.constantFrom<'system' | 'user'>('system', 'user'), { maxLength: 3 }),
          fc.constant('assistant'),
        )
        .map(([asked, said]) => ['user', ...asked, said] as const);
      fc.assert(
        fc.property(start, fc.array(turn, { maxLength: 3 }), fc.boolean(), (head, turns, isAsked) => {
          const roles = [...head, ...turns.flat(), ...(isAsked || head.length === 0 ? ['user'] : [])];
          const messages = roles.map(
            (role, at): Message =>
              role === 'assistant'
                ? reply(`text-${at}.`)
                : { role: role === 'system' ? 'system' : 'user', text: `text-${at}.` },
          );
          const text = renderText(model, messages, [], 'last-message');
          assert.deepEqual(
            [...text.matchAll(/text-\d+\./g)].map(([found]) => found),
            messages.map((message) => message.text),
          );
        }),
        { numRuns: 200, seed: 46 },
      );
    });
  }

  it('at the start become one message where the template takes one', async () => {
    await using dir = await writeTinyModel(templates['takes one at the start and needs a user message']);
    const model = await loadModel(dir.dir);
    const messages: readonly Message[] = [
      { role: 'system', text: 'a' },
      { role: 'system', text: 'b' },
      { role: 'user', text: 'c' },
      reply('d'),
      { role: 'system', text: 'e' },
    ];
    const text = renderText(model, messages, [], 'last-message');
    assert.equal(text, '<system>a\n\nb</><user>c</><assistant>d</><user>e</>');
  });
});

describe('the arguments of an echoed call', () => {
  const walks = loop(
    "{%- for call in m.tool_calls or [] %}{%- for key, value in call.function.arguments.items() %}{{- '<tool_call><function=' + key + '><parameter=' + value + '>' }}{%- endfor %}{%- endfor %}",
  );
  const prints = loop(
    "{%- for call in m.tool_calls or [] %}{{- '<tool_call>arguments' + (call.function.arguments | tojson) }}{%- endfor %}",
  );

  it('are rendered if they are empty, null, broken or no object', async () => {
    for (const [template, empty, broken, ofNull] of [
      [walks, '', '<tool_call><function=INVALID_JSON><parameter={"a">', '<tool_call><function=a><parameter=None>'],
      [prints, '<tool_call>arguments{}', '<tool_call>arguments"{\\"a\\""', '<tool_call>arguments{"a": null}'],
    ] as const) {
      await using dir = await writeTinyModel(template);
      const model = await loadModel(dir.dir);
      const render = (args: string) =>
        renderText(
          model,
          [
            { role: 'user', text: 'x' },
            { ...reply(''), role: 'assistant', toolCalls: [{ id: 'a', name: 'f', arguments: args }] } as Message,
          ],
          [],
          'last-message',
        );
      for (const args of ['', ' \n', 'null', '{}']) assert.equal(render(args), empty, JSON.stringify(args));
      assert.equal(render('{"a"'), broken);
      assert.equal(render('{"a": null}'), ofNull);
      for (const args of ['[1]', '7', '"ls"', `${'['.repeat(100)}${']'.repeat(100)}`])
        assert.ok(render(args).length > 0);
    }
  });
});

it('a tool without a description, or with null in its schema, is offered by templates that fail at either', async () => {
  const template = [
    "{{- '<tool_call>arguments' if false }}",
    "{%- for tool in tools or [] %}{{- '<' + tool.function.description + '>' }}",
    "{%- for key, value in tool.function.parameters.properties.items() %}{{- key + '=' + value.default }}{%- endfor %}",
    '{%- endfor %}',
    loop(body('m.role')),
  ].join('');
  await using dir = await writeTinyModel(template);
  const model = await loadModel(dir.dir);
  const parameters = { type: 'object', properties: { a: { default: null } } };
  const tool = { name: 'f', description: null, parameters };
  assert.equal(renderText(model, [{ role: 'user', text: 'x' }], [tool], 'reply'), '<>a=None<user>x</>');
});
