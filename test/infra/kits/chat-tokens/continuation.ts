import assert from 'node:assert/strict';
import type { AssistantMessage, Message } from '../../../../infra/kits/chat-tokens/conversation.ts';
import type { Model } from '../../../../infra/kits/chat-tokens/model.ts';
import { renderFull, renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { renderSuffix } from '../../../../infra/kits/chat-tokens/suffix.ts';
import { bash } from '../../../helpers/models/read-reply.ts';

export const callBash = (id: string, command: string) => ({ id, name: 'bash', arguments: JSON.stringify({ command }) });
const speak = (reasoning: string): AssistantMessage => ({
  role: 'assistant',
  text: 'Look é 🦊.',
  reasoning,
  toolCalls: [],
});
export const call = (reasoning: string): AssistantMessage => ({
  role: 'assistant',
  text: '',
  reasoning,
  toolCalls: [callBash('functions.bash:0', 'ls')],
});
export const user: Message = { role: 'user', text: 'More <é>.' };
export const result: Extract<Message, { role: 'tool' }> = {
  role: 'tool',
  callId: 'functions.bash:0',
  name: 'bash',
  text: 'calc.js',
};
export const opening: readonly Message[] = [
  { role: 'system', text: 'Be brief.' },
  { role: 'user', text: 'Fix 🦊 it.' },
];

/** Branches of one, two and three turns; each is followed by a user turn or a tool result, as its last reply asks. */
const branches = (reasoning: string): readonly (readonly [head: readonly Message[], reply: AssistantMessage])[] => [
  [opening, speak(reasoning)],
  [opening, call(reasoning)],
  [[...opening, call(reasoning), result], speak(reasoning)],
  [[...opening, call(reasoning), result], call(reasoning)],
  [[...opening, speak(reasoning), user], call(reasoning)],
  [[...opening, call(reasoning), result, speak(reasoning), user], call(reasoning)],
];

/**
 * Asserts that the full render begins with the prompt, contains the reply, and ends with the suffix right after a stop token
 * of the model. Returns whether there is a suffix.
 */
function assertSuffixIsFullRender(model: Model, head: readonly Message[], reply: AssistantMessage): boolean {
  const next = reply.toolCalls.length === 0 ? user : result;
  const full = renderFull(model, { messages: [...head, reply, next], tools: [bash] });
  const text = renderText(model, [...head, reply, next], [bash], 'reply');
  const prompt = renderText(model, head, [bash], 'reply');
  const reasoned = {
    last: reply.reasoning !== '',
    before: head.some((m) => m.role === 'assistant' && m.reasoning !== ''),
  };
  const stop = model.stopTokenIds.find((id) => {
    const suffix = renderSuffix(model, [next], { lastSampledId: id, reasoned });
    return suffix !== null;
  });
  if (stop === undefined) return false;
  const suffix = renderSuffix(model, [next], { lastSampledId: stop, reasoned }) ?? [];
  assert.deepEqual(full.slice(-suffix.length), suffix);
  assert.equal(full.at(-suffix.length - 1), stop);
  assert.ok(text.startsWith(prompt), 'the prompt is kept');
  const replied = text.slice(prompt.length);
  const printsCall = reply.toolCalls.length > 0 && model.argumentsForm !== 'none';
  for (const part of [reply.text, reply.reasoning, printsCall ? '"ls"' : '']) {
    assert.ok(replied.includes(part) || replied.includes(part.replaceAll('"', '')), `${part} is kept`);
  }
  return true;
}

/** Asserts that each branch is continued as a full render would, where the template keeps what came before. */
export function assertContinues(model: Model, plain: string, reasoned: string): void {
  for (const [reasoning, kept] of [
    ['', plain],
    ['Because.', reasoned],
  ] as const) {
    for (const [head, reply] of branches(reasoning)) {
      const given = assertSuffixIsFullRender(model, head, reply);
      assert.equal(given, kept.includes(reply.toolCalls.length === 0 ? 'u' : 't'));
    }
  }
}
