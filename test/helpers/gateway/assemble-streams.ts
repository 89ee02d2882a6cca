import assert from 'node:assert/strict';

// These functions assemble streams as the SDKs of each API do, by the documented meaning of the events.

// biome-ignore lint/suspicious/noExplicitAny: tests read replies as clients do
type Json = any;

/** Returns the data of each event. An event's name, if it has one, must be the data's type. */
export function eventsOf(stream: string): Json[] {
  return stream
    .split('\n\n')
    .filter((event) => event !== '' && !event.startsWith(':') && event !== 'data: [DONE]')
    .map((event) => {
      const [, name, data] = /^(?:event: (.+)\n)?data: (.+)$/.exec(event) ?? assert.fail(`not an event: ${event}`);
      const parsed = JSON.parse(data ?? '');
      if (name !== undefined) assert.equal(name, parsed.type);
      return parsed;
    });
}

/** Assembles a chat completion from its chunks. */
export function assembleChat(stream: string): Json {
  const message: Json = { role: 'assistant', content: null, refusal: null };
  let last: Json = null;
  for (const chunk of eventsOf(stream)) {
    const [choice] = chunk.choices;
    if (choice === undefined) {
      last.usage = chunk.usage;
      continue;
    }
    const { delta, ...rest } = choice;
    last = { ...chunk, object: 'chat.completion', choices: [{ ...rest, message }] };
    const { content, reasoning_content: reasoning, tool_calls: calls } = delta;
    if (content !== undefined) message.content = (message.content ?? '') + content;
    if (reasoning !== undefined) message.reasoning_content = (message.reasoning_content ?? '') + reasoning;
    for (const { index, ...call } of calls ?? []) {
      message.tool_calls ??= [];
      assert.equal(index, message.tool_calls.push(call) - 1);
    }
  }
  if (message.content === '' && message.tool_calls !== undefined) message.content = null;
  return last;
}

/** Assembles a response from its events, and checks that the pieces equal what the closing events repeat. */
export function assembleResponse(stream: string): Json {
  const output: Json[] = [];
  let last: Json = null;
  let next = 0;
  for (const event of eventsOf(stream)) {
    if (event.type === 'keepalive') {
      assert.equal(event.sequence_number, next - 1);
      continue;
    }
    assert.equal(event.sequence_number, next);
    next += 1;
    const item = output[event.output_index];
    if (event.item_id !== undefined) assert.equal(event.item_id, item.id);
    last = event;
    switch (event.type) {
      case 'response.output_item.added':
        assert.equal(event.output_index, output.push(structuredClone(event.item)) - 1);
        break;
      case 'response.content_part.added':
        assert.equal(event.content_index, item.content.push(structuredClone(event.part)) - 1);
        break;
      case 'response.output_text.delta':
      case 'response.reasoning_text.delta':
        item.content[event.content_index].text += event.delta;
        break;
      case 'response.output_text.done':
      case 'response.reasoning_text.done':
        assert.equal(item.content[event.content_index].text, event.text);
        break;
      case 'response.content_part.done':
        assert.deepEqual(item.content[event.content_index], event.part);
        break;
      case 'response.function_call_arguments.delta':
        item.arguments += event.delta;
        break;
      case 'response.function_call_arguments.done':
        assert.deepEqual([item.name, item.arguments], [event.name, event.arguments]);
        break;
      case 'response.custom_tool_call_input.delta':
        item.input += event.delta;
        break;
      case 'response.custom_tool_call_input.done':
        assert.equal(item.input, event.input);
        break;
      case 'response.output_item.done':
        assert.deepEqual({ ...item, status: event.item.status }, event.item);
        output[event.output_index] = event.item;
        break;
      default:
        assert.match(event.type, /^(keepalive|response\.(created|in_progress|completed|incomplete|failed))$/);
    }
  }
  assert.match(last.type, /^response\.(completed|incomplete|failed)$/);
  assert.equal(last.type, `response.${last.response.status}`);
  assert.deepEqual(last.response.output, output);
  return last.response;
}

/** Assembles a message from its events. */
export function assembleMessage(stream: string): Json {
  const [start, ...events] = eventsOf(stream);
  assert.equal(start.type, 'message_start');
  const message = structuredClone(start.message);
  let json = '';
  for (const event of events) {
    const block = message.content[event.index];
    if (event.index !== undefined && event.type !== 'content_block_start') {
      assert.equal(event.index, message.content.length - 1, 'one block is open at a time');
    }
    if (event.type === 'content_block_start') {
      assert.equal(event.index, message.content.push(structuredClone(event.content_block)) - 1);
      json = '';
    } else if (event.type === 'content_block_delta') {
      const { type, ...delta } = event.delta;
      if (type === 'text_delta') block.text += delta.text;
      else if (type === 'thinking_delta') block.thinking += delta.thinking;
      else if (type === 'signature_delta') block.signature = delta.signature;
      else if (type === 'input_json_delta') json += delta.partial_json;
      else assert.fail(type);
    } else if (event.type === 'content_block_stop') {
      if (json !== '') block.input = JSON.parse(json);
    } else if (event.type === 'message_delta') {
      Object.assign(message, event.delta, { usage: { ...message.usage, ...event.usage } });
    } else assert.match(event.type, /^(ping|message_stop)$/);
  }
  assert.equal(events.at(-1).type, 'message_stop');
  return message;
}
