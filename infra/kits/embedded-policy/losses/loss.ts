import type { LossConfig, LossName } from '../core.ts';

/**
 * What a loss is here: a function of one token's logprob under the current weights. It returns the token's loss and the
 * derivative by that logprob; the network's backward pass does the rest. The reduction is everywhere the SUM over tokens and
 * datums; normalisation belongs into `weights` and `advantages`.
 */

/** Symbols in the formulas: l = logprob now, b = sampler's logprob, r = exp(l - b), A = advantage, w = weight. */
export interface TokenInput {
  readonly logprob: number;
  readonly weight: number;
  readonly samplerLogprob: number;
  readonly advantage: number;
}

export interface TokenLoss {
  readonly loss: number;
  /** d loss / d logprob */
  readonly slope: number;
  /** whether a clip took the token's gradient or changed its size */
  readonly clipped: boolean;
}

export type DatumField = 'weights' | 'logprobs' | 'advantages';

export interface Loss {
  readonly name: LossName;
  /** datum fields that must be given, besides the tokens */
  readonly needs: readonly DatumField[];
  /** settings it takes, with their defaults */
  readonly settings: Readonly<Partial<Record<keyof LossConfig, number>>>;
  /** of a token whose weight is not 0 */
  token(input: TokenInput, settings: Readonly<Required<LossConfig>>): TokenLoss;
}
