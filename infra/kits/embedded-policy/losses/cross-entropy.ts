import type { Loss } from './loss.ts';

/**
 * Negative log-likelihood: loss = -w l.
 * Source: Tinker documentation, "Loss functions", cross_entropy.
 */

export const crossEntropy: Loss = {
  name: 'cross_entropy',
  needs: ['weights'],
  settings: {},
  token: ({ logprob, weight }) => ({ loss: -weight * logprob, slope: -weight, clipped: false }),
};
