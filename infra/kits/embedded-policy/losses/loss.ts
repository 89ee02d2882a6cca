import type { LossConfig, LossName } from '../trainer-core.ts';

// A loss is a function of one token's logprob under the current weights. It returns the token's loss and its derivative by that
// logprob; the network's backward pass does the rest. The reduction is always the SUM over tokens and datums; normalisation
// belongs in `weights` and `advantages`.

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
  /** Whether a clip removed the token's gradient or changed its size. */
  readonly clipped: boolean;
}

export type DatumField = 'weights' | 'logprobs' | 'advantages';

export interface Loss {
  readonly name: LossName;
  /** Datum fields that are required besides the tokens. */
  readonly needs: readonly DatumField[];
  /** The loss's settings with their defaults. */
  readonly settings: Readonly<Partial<Record<keyof LossConfig, number>>>;
  /** Returns the loss of a token whose weight is not 0. */
  token(input: TokenInput, settings: Readonly<Required<LossConfig>>): TokenLoss;
}
