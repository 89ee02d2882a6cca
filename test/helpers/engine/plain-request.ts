import { promptOf } from '../../../infra/engine/prompt.ts';

/** A request for four tokens after two, sampled as the engine's weights have it. */
export const plainRequest = {
  requestId: 'turn-1',
  prompt: promptOf([1, 2]),
  maxTokens: 4,
  temperature: 1,
  topP: 1,
  topK: -1,
  stopTokenIds: [9],
};
