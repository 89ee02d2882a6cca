import { checkPrefix, loadModel, type Model } from '../../../../infra/kits/chat-tokens/index.ts';
import { type Check, type Look, message, missing, ok, warn } from './check.ts';

const remedy =
  'each such turn begins a segment of its own; a variant of the template that keeps earlier turns as they were avoids it';

/** How the gateway would read and continue what this model says. */
export const checkModel: Look = async function* (_, { model: dir }) {
  if (dir === undefined) return;
  let model: Model;
  try {
    model = await loadModel(dir);
  } catch (error) {
    yield missing('model', message(error), 'name a model directory with tokenizer.json and a chat template');
    return;
  }
  yield ok('model', `${model.name}: replies in the ${model.family.name} syntax`);
  for (const { what, kept, reason } of checkPrefix(model)) yield prefixOf(what, kept, reason);
};

function prefixOf(what: string, kept: boolean, reason: string | null): Check {
  if (kept) return ok('prefix', `${what} extends the branch`);
  return warn('prefix', `${what} forks: ${reason}`, remedy);
}
