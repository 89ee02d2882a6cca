import type { Sampling, TokenSampling } from '../../workflows/contracts/trace.ts';
import type { Conversation } from '../kits/chat-tokens/index.ts';

/** A request as a dialect has read it. Everything else that clients ask for (stop words, seeds, …) belongs to the run. */
export interface ModelRequest {
  readonly conversation: Conversation;
  readonly delivery: 'stream' | 'whole';
  /** The client's limit on the reply, which may be below the run's; null when it sent none. */
  readonly maxTokens: number | null;
  /** The sampling parameters that the client sent; the run decides whether they apply. */
  readonly sampling: Partial<TokenSampling>;
}

/** A part of the reply that may reach the agent while the model still samples; tool calls wait until the turn is journaled. */
export interface Delta {
  readonly kind: 'text' | 'reasoning';
  readonly text: string;
}

/** Returns how many tokens client and session allow for the reply. */
export const askedTokens = ({ maxTokens }: ModelRequest, { maxTokensPerTurn }: Sampling): number =>
  Math.min(maxTokens ?? maxTokensPerTurn, maxTokensPerTurn);

/** Returns the client's sampling parameters, where the session allows them and they differ from its own; else null. */
export function overrideOf({ sampling: asked }: ModelRequest, sampling: Sampling): TokenSampling | null {
  if (sampling.overridable !== true) return null;
  const { temperature, topP, topK } = sampling;
  const override = { temperature, topP, topK, ...asked };
  const isOther = override.temperature !== temperature || override.topP !== topP || override.topK !== topK;
  return isOther ? override : null;
}
