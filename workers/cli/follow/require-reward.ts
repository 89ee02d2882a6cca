import type { Config } from '../../../infra/settings/config.ts';
import { asUsageError, orUsageError } from '../text/errors.ts';

/** Checks the reward policy before anything starts. */
export async function requireReward(policy: string, config: Config): Promise<void> {
  const { createRewards } = await import('../../../infra/rewards.ts');
  const rewards = await createRewards(config.rewards).catch((error: unknown) => {
    throw asUsageError(error);
  });
  orUsageError(() => rewards.require(policy), '--reward-policy');
}
