import assert from 'node:assert/strict';
import type { Message, Model } from '../../../infra/kits/chat-tokens/index.ts';
import { renderText } from '../../../infra/kits/chat-tokens/index.ts';

/** Returns the ids that the model would have sampled for a reply that renders like this, and the prompt before them. */
export function renderedIds(model: Model, reply: Message): { ids: number[]; prompt: string } {
  const head: readonly Message[] = [{ role: 'user', text: 'Go.' }];
  const asked = renderText(model, head, [], 'reply');
  const whole = renderText(model, [...head, reply], [], 'last-message');
  // Some templates open a reasoning in the prompt that they do not print for a reply without one.
  const differs = [...asked].findIndex((character, at) => character !== whole[at]);
  const prompt = differs < 0 ? asked : asked.slice(0, differs);
  assert.ok(prompt.includes('Go.'));
  const ids = model.tokens.encode(whole.slice(prompt.length));
  return { ids: ids.filter((id) => !model.stopTokenIds.includes(id)), prompt };
}
