import { z } from 'zod';
import { resolutionRewards, rewardOf } from '../workflows/algorithms/reward.ts';
import { asReward } from '../workflows/algorithms/rounding.ts';
import { errorMessage } from '../workflows/contracts/error-message.ts';
import { TemperFailure } from '../workflows/contracts/failures.ts';
import { isOwnPolicy, rewardPolicies } from '../workflows/contracts/resolution.ts';
import type { Verdict } from '../workflows/contracts/verdict.ts';
import { loadList, problemsOf, refuseModule } from './load-module.ts';

/** A reward of the operator's own: a pure function of a verdict, of any kind. */
export interface Reward {
  /** The name of the policy in settings: up to 40 small letters, digits and hyphens. */
  readonly name: string;
  /** Returns a number from 0 to 1. The same verdict must always get the same reward. */
  reward(verdict: Verdict): number | Promise<number>;
}

/** The parts of temper that a module of rewards gets. */
export interface RewardKit {
  readonly rewardOf: typeof rewardOf;
  readonly resolutionRewards: typeof resolutionRewards;
}

/** The default export of a module with rewards: one, several, or a function that returns them. */
export type RewardModule = Reward | readonly Reward[] | ((kit: RewardKit) => Reward | readonly Reward[]);

/** The reward policies by name: temper's and the operator's. */
export interface Rewards {
  /** Throws TemperFailure InvalidInput, which lists the names, for an unknown policy. */
  require(policy: string): void;
  /** Computes a reward. Throws InvalidReward if a function of the operator's fails, or returns no number from 0 to 1. */
  rewardOf(verdict: Verdict, policy: string): Promise<number>;
}

const reward = z.custom<Reward>();
const shape = z.looseObject(
  {
    name: z
      .string({ error: 'expected a name' })
      .regex(/^[a-z][a-z0-9-]{0,39}$/, { error: 'expected up to 40 small letters, digits and hyphens' }),
    reward: z.custom((value) => typeof value === 'function', { error: 'expected a function' }),
  },
  { error: 'expected a reward, a list of them, or a function that returns them' },
);

/**
 * Creates the table of reward policies, with the rewards of the modules that `TEMPER_REWARDS` names: absolute paths, or packages.
 * Throws TemperFailure InvalidInput, which names the module and the field that is wrong.
 */
export async function createRewards(named: readonly string[] = []): Promise<Rewards> {
  const own = new Map<string, Reward>();
  for (const from of named) {
    const ownModule = { setting: 'TEMPER_REWARDS', from } as const;
    for (const given of await loadList(ownModule, 'rewards', { rewardOf, resolutionRewards })) {
      const parsed = shape.safeParse(given);
      if (!parsed.success) throw refuseModule(ownModule, problemsOf(parsed.error));
      const { name } = parsed.data;
      if (own.has(name) || isOwnPolicy(name))
        throw refuseModule(ownModule, `name: expected a name that no other reward policy has, got ${name}`);
      own.set(name, reward.parse(given));
    }
  }
  const find = (policy: string): Reward => {
    const found = own.get(policy);
    if (found !== undefined) return found;
    const names = [...rewardPolicies, ...own.keys()].join(', ');
    throw new TemperFailure(
      'InvalidInput',
      `rewardPolicy: expected one of ${names}, got ${policy}; name its module in TEMPER_REWARDS of every process of the stack`,
    );
  };
  return {
    require: (policy) => void (isOwnPolicy(policy) || find(policy)),
    rewardOf: async (verdict, policy) =>
      isOwnPolicy(policy) ? rewardOf(verdict, policy) : applyReward(find(policy), verdict),
  };
}

async function applyReward(own: Reward, verdict: Verdict): Promise<number> {
  const value: unknown = await Promise.resolve()
    .then(() => own.reward(verdict))
    .catch((error: unknown) => {
      throw new TemperFailure('InvalidReward', `reward policy ${own.name} failed: ${errorMessage(error)}`, {
        cause: error,
      });
    });
  const reward = asReward(value);
  if (reward !== null) return reward;
  throw new TemperFailure('InvalidReward', `reward policy ${own.name}: expected a number from 0 to 1, got ${value}`);
}
