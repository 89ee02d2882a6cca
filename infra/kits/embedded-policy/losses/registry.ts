import { PolicyError, refuse } from '../errors.ts';
import { type LossConfig, type LossName, lossNames } from '../trainer-core.ts';
import { cispo } from './cispo.ts';
import { crossEntropy } from './cross-entropy.ts';
import { importanceSampling } from './importance-sampling.ts';
import type { Loss } from './loss.ts';
import { ppo } from './ppo.ts';

export const losses: Readonly<Record<LossName, Loss>> = {
  cross_entropy: crossEntropy,
  importance_sampling: importanceSampling,
  ppo,
  cispo,
};

export function findLoss(name: string): Loss {
  const known = lossNames.find((candidate) => candidate === name);
  if (known === undefined) throw refuse('unknown-loss', 'lossName', `one of ${lossNames.join(', ')}`, name);
  return losses[known];
}

/**
 * Returns a loss's settings with defaults filled in. Refuses a setting that the loss does not have, since it would have no
 * effect.
 */
export function resolveLossConfig(loss: Loss, config: LossConfig): Required<LossConfig> {
  for (const [key, value] of Object.entries(config)) {
    if (!Object.hasOwn(loss.settings, key)) {
      const takes = Object.keys(loss.settings).join(', ') || 'none';
      throw refuse(
        'invalid-loss-config',
        `lossConfig.${key}`,
        `a setting of ${loss.name} (${takes})`,
        'an unknown one',
      );
    }
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
      throw refuse('invalid-loss-config', `lossConfig.${key}`, 'a finite number, at least 0', value);
    }
  }
  const resolved = { clip_low_threshold: 0, clip_high_threshold: 0, kl_coef: 0, ...loss.settings, ...config };
  if (resolved.clip_low_threshold > resolved.clip_high_threshold) {
    const got = `${resolved.clip_low_threshold} and ${resolved.clip_high_threshold}`;
    const message = `lossConfig: expected clip_low_threshold <= clip_high_threshold (absolute ratios), got ${got}`;
    throw new PolicyError('invalid-loss-config', message, { field: 'lossConfig.clip_low_threshold', got });
  }
  return resolved;
}
