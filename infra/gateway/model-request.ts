import type { Sampling, TokenSampling } from '../../workflows/contracts/trace.ts';
import type { Conversation } from '../kits/chat-tokens/index.ts';

/** A request as a dialect has read it. What else the client asked for (stop words, seeds, ...) is the run's to say. */
export interface ModelRequest {
  readonly conversation: Conversation;
  readonly delivery: 'stream' | 'whole';
  /** The client may ask for less than the run allows; null: it did not. */
  readonly maxTokens: number | null;
  /** What the client asked for; whether it gets it is the run's to say. */
  readonly sampling: Partial<TokenSampling>;
}

/** How many tokens a reply may have, as far as client and session have a say. */
export const askedTokens = ({ maxTokens }: ModelRequest, { maxTokensPerTurn }: Sampling): number =>
  Math.min(maxTokens ?? maxTokensPerTurn, maxTokensPerTurn);

/** By what a request is sampled where its session lets the client decide and the client asked for something else; else null. */
export function overrideOf({ sampling: asked }: ModelRequest, sampling: Sampling): TokenSampling | null {
  if (sampling.overridable !== true) return null;
  const { temperature, topP, topK } = sampling;
  const override = { temperature, topP, topK, ...asked };
  const isOther = override.temperature !== temperature || override.topP !== topP || override.topK !== topK;
  return isOther ? override : null;
}
