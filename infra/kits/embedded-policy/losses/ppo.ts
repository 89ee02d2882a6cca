import type { Loss } from './loss.ts';

/**
 * Clipped surrogate: loss = -w min(r A, clip(r, low, high) A), r = exp(l - b); thresholds are absolute ratios.
 * Source: Schulman et al. 2017, arXiv 1707.06347, eq. 7; asymmetric bounds as in DAPO, arXiv 2503.14476.
 */

export const ppo: Loss = {
  name: 'ppo',
  needs: ['logprobs', 'advantages'],
  settings: { clip_low_threshold: 0.8, clip_high_threshold: 1.2, kl_coef: 0 },
  token({ logprob, weight, samplerLogprob, advantage }, { clip_low_threshold: low, clip_high_threshold: high }) {
    const ratio = Math.exp(logprob - samplerLogprob);
    const bounded = Math.min(Math.max(ratio, low), high);
    const clipped = bounded * advantage < ratio * advantage;
    const loss = -weight * (clipped ? bounded : ratio) * advantage;
    return { loss, slope: clipped ? 0 : loss, clipped };
  },
};
