import type { Loss } from './loss.ts';

/**
 * Clipped importance weight, not differentiated: loss = -w stop_gradient(clip(r, low, high)) A l. Every token keeps a gradient.
 * Source: MiniMax-M1, arXiv 2506.13585, eq. 4; thresholds are absolute ratios.
 */

export const cispo: Loss = {
  name: 'cispo',
  needs: ['logprobs', 'advantages'],
  settings: { clip_low_threshold: 0.8, clip_high_threshold: 1.2, kl_coef: 0 },
  token({ logprob, weight, samplerLogprob, advantage }, { clip_low_threshold: low, clip_high_threshold: high }) {
    const ratio = Math.exp(logprob - samplerLogprob);
    const bounded = Math.min(Math.max(ratio, low), high);
    const slope = -weight * bounded * advantage;
    return { loss: slope * logprob, slope, clipped: bounded !== ratio };
  },
};
