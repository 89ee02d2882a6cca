import { z } from 'zod';

/** The name of the file, below `tools/` of a task, that says which environment the task is. */
export const environmentFile = 'environment.json';

const rewardRules = ['last', 'sum'] as const;

/** The environment of a task and how its episode begins. */
export const environmentTask = z.strictObject({
  environment: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,59}$/, { error: 'expected the name of an environment in environments.json' }),
  /** The arguments of the reset. */
  reset: z.record(z.string(), z.unknown()).default({}),
  /** The rule that makes the reward of the episode from the rewards of its steps: the last one, or their sum. */
  reward: z.enum(rewardRules, { error: `expected one of ${rewardRules.join(', ')}` }).default('last'),
});
export type EnvironmentTask = z.output<typeof environmentTask>;
