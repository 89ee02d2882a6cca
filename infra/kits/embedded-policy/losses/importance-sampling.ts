import type { Loss } from './loss.ts';

/**
 * Policy gradient corrected for off-policy samples: loss = -w r A, r = exp(l - b).
 * Source: Tinker documentation, "Loss functions", importance_sampling.
 */

export const importanceSampling: Loss = {
  name: 'importance_sampling',
  needs: ['logprobs', 'advantages'],
  settings: { kl_coef: 0 },
  token({ logprob, weight, samplerLogprob, advantage }) {
    const loss = -weight * Math.exp(logprob - samplerLogprob) * advantage;
    return { loss, slope: loss, clipped: false };
  },
};
