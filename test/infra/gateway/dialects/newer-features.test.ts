import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FinishedReply } from '../../../../infra/gateway/dialects/dialect.ts';
import { dialects } from '../../../../infra/gateway/dialects/index.ts';
import { assembleResponse } from '../../../helpers/gateway/assemble-streams.ts';

const dialect = (name: string) => dialects.find((each) => each.name === name) ?? assert.fail(name);
const image = 'data:image/png;base64,AAAA';
const note = '[image: not shown to this model, which reads text only]';
const schema = { type: 'object', properties: { query: { type: 'string' } } };

describe('the responses dialect', () => {
  const { read } = dialect('openai-responses');
  const user = { type: 'message', role: 'user', content: 'x' };
  const messagesOf = (...input: object[]) => read({ input: [user, ...input] }).conversation.messages.slice(1);

  it('reads the items of tools that the client runs', () => {
    const messages = messagesOf(
      { type: 'local_shell_call', call_id: 'a', status: 'completed', action: { type: 'exec', command: ['ls'] } },
      { type: 'function_call_output', call_id: 'a', output: 'b' },
      { type: 'tool_search_call', call_id: 's', execution: 'client', arguments: { query: 'mail' } },
      { type: 'tool_search_output', call_id: 's', status: 'completed', execution: 'client', tools: [] },
      { type: 'agent_message', author: 'helper', recipient: 'main', content: [{ type: 'input_text', text: 'Done.' }] },
    );
    assert.deepEqual(
      messages.map((message) => ('toolCalls' in message ? message.toolCalls : message.text)),
      [
        [{ id: 'a', name: 'local_shell', arguments: '{"type":"exec","command":["ls"]}' }],
        'b',
        [{ id: 's', name: 'tool_search', arguments: '{"query":"mail"}' }],
        'No tools found.',
        'Message of helper:\nDone.',
      ],
    );
  });

  it('offers a search for tools that the client runs, the tools that it finds, and those that an item adds', () => {
    const search = { type: 'tool_search', execution: 'client', description: 'Searches.', parameters: schema };
    const mail = { type: 'namespace', name: 'mail', tools: [{ type: 'function', name: 'send', parameters: schema }] };
    const request = read({
      input: [
        user,
        { type: 'tool_search_output', call_id: 's', status: 'completed', execution: 'client', tools: [mail, mail] },
        {
          type: 'additional_tools',
          role: 'developer',
          tools: [{ type: 'function', name: 'look', parameters: schema }],
        },
      ],
      tools: [search, { type: 'tool_search', execution: 'server' }],
    });
    const { tools, messages } = request.conversation;
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['tool_search', 'mail__send', 'look'],
    );
    assert.deepEqual(messages.at(-1), {
      role: 'tool',
      callId: 's',
      name: 'tool_search',
      text: 'Found tools: mail__send',
    });
    const toolCalls = [
      { id: 'c1', name: 'tool_search', arguments: '{"query":"x"}' },
      { id: 'c2', name: 'mail__send', arguments: '{}' },
    ];
    const reply: FinishedReply = {
      key: 'k',
      createdAt: 0,
      promptTokens: 1,
      reply: { role: 'assistant', text: '', reasoning: '', toolCalls },
      finishReason: 'stop',
      sampledTokens: 1,
    };
    const writer = request.stream(reply);
    const streamed = assembleResponse(writer.begin() + writer.finish(reply));
    assert.deepEqual(streamed, JSON.parse(JSON.stringify(request.whole(reply))));
    const [found, sent] = streamed.output;
    assert.deepEqual(
      [found.type, found.call_id, found.execution, found.arguments],
      ['tool_search_call', 'c1', 'client', { query: 'x' }],
    );
    assert.deepEqual([sent.type, sent.namespace, sent.name], ['function_call', 'mail', 'send']);
  });

  it('leaves out the items of tools that OpenAI runs, and puts a note where it compacted', () => {
    const dropped = ['web_search_call', 'image_generation_call', 'mcp_list_tools', 'mcp_call', 'ghost_snapshot'];
    assert.deepEqual(messagesOf(...dropped.map((type) => ({ type, id: 'x' }))), []);
    for (const type of ['compaction', 'compaction_summary', 'context_compaction']) {
      const [message] = messagesOf({ type, encrypted_content: 'secret' });
      assert.deepEqual([message?.role, message?.text.includes('compacted')], ['user', true]);
    }
  });
});

describe('the messages dialect', () => {
  const { read } = dialect('anthropic-messages');
  const conversationOf = (content: object[], more: object = {}) =>
    read({ messages: [{ role: 'user', content: 'x' }, ...content, { role: 'user', content: 'y' }], ...more })
      .conversation;

  it('reads references to tools, documents of text and summaries', () => {
    const { messages } = conversationOf([
      {
        role: 'assistant',
        content: [
          { type: 'compaction', content: 'So far.' },
          { type: 'text', text: ' Go.' },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'tool_reference', tool_name: 'send' }] },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hello.' } },
          { type: 'search_result', source: 's', title: 'T', content: [{ type: 'text', text: 'found' }] },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: '' } },
        ],
      },
    ]);
    assert.deepEqual(
      messages.slice(1, -1).map(({ text }) => text),
      ['So far. Go.', '[tool: send]', 'Hello.\nT\nfound\n[document: not shown to this model]'],
    );
  });

  it('leaves out the blocks of tools that Anthropic runs, and its search for tools', () => {
    const blocks = ['server_tool_use', 'web_search_tool_result', 'tool_search_tool_result', 'mcp_tool_use', 'fallback'];
    const { messages, tools } = conversationOf(
      [{ role: 'assistant', content: [...blocks.map((type) => ({ type })), { type: 'text', text: 'So.' }] }],
      {
        tools: [
          { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
          { name: 'send', input_schema: schema, defer_loading: true },
        ],
      },
    );
    assert.deepEqual(messages[1], { role: 'assistant', text: 'So.', reasoning: '', toolCalls: [] });
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['send'],
    );
  });
});

describe('an image', () => {
  const parts = ['Look:', { url: image }, 'Well?'];
  const bodies: Readonly<Record<string, object>> = {
    'openai-chat': {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look:' },
            { type: 'image_url', image_url: { url: image } },
            { type: 'text', text: 'Well?' },
          ],
        },
      ],
    },
    'openai-responses': {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look:' },
            { type: 'input_image', image_url: image, detail: 'auto' },
            { type: 'input_text', text: 'Well?' },
          ],
        },
      ],
    },
    'anthropic-messages': {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look:' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
            { type: 'text', text: 'Well?' },
          ],
        },
      ],
    },
  };

  it('is kept in its place beside the text, where a note stands for it', () => {
    for (const [name, body] of Object.entries(bodies)) {
      const { messages } = dialect(name).read(body).conversation;
      assert.deepEqual(messages, [{ role: 'user', text: `Look:\n${note}\nWell?`, parts }], name);
    }
  });

  it('in a result of a tool is read too', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'aGk=' };
    const content = [{ type: 'image', source }];
    const { messages } = dialect('anthropic-messages').read({
      messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] }],
    }).conversation;
    const url = 'data:image/png;base64,aGk=';
    assert.deepEqual(messages, [{ role: 'tool', callId: 'a', name: null, text: note, parts: [{ url }] }]);
  });

  it('at an address is not passed on, since the model server would fetch it', () => {
    for (const url of ['http://169.254.169.254/', 'https://example.com/a.png', 'file:///etc/passwd']) {
      const { messages } = dialect('openai-chat').read({
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      }).conversation;
      assert.deepEqual(messages, [{ role: 'user', text: '[image: not shown to this model]' }], url);
    }
  });

  it('that nothing can read has a note of its own', () => {
    const { messages } = dialect('openai-responses').read({
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', file_id: 'f' },
            { type: 'input_audio', audio_url: 'u' },
          ],
        },
      ],
    }).conversation;
    assert.deepEqual(messages[0]?.text, '[image: not shown to this model]\n[audio: not shown to this model]');
  });
});
