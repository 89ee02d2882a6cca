import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import { type Budget, type BudgetUse, budget } from './budget.ts';
import type { RunCost } from './cost.ts';
import type { GroupDurations } from './ended-group.ts';
import type { FlagCounts, RisingTrick } from './flags.ts';
import { integer, number, oneOf, text } from './input.ts';
import { onFlag } from './on-flag.ts';
import type { Count, EqualRewards, Fate, Outcome } from './outcome.ts';
import { defaultPool, poolName } from './policy.ts';
import { leaveOut, rolloutSettings } from './rollout.ts';
import { refusedSampling } from './run-sampling.ts';
import { weight } from './share.ts';

const learningRateRise = integer(0, 1_000_000, 'updates').default(0);
const learningRateFall = integer(0, 1_000_000, 'updates').default(0);

const aggregations = ['rollout-mean', 'token-mean', 'constant'] as const;
/** The rule by which the losses of tokens are summed to that of a batch. */
export type Aggregation = (typeof aggregations)[number];

const trainingFields = z.strictObject({
  advantage: oneOf(['grpo', 'dr-grpo', 'rloo'])
    .default('grpo')
    .describe('The rule that turns the rewards of a group into advantages.'),
  minStd: number(0, 1)
    .optional()
    .describe(
      'The smallest standard deviation by which `grpo` divides: groups whose rewards differ less weigh less. Default: 0.',
    ),
  aggregation: oneOf(aggregations)
    .optional()
    .describe(
      "Whether a rollout's loss is divided by its own tokens (`rollout-mean`), by all tokens of the batch (`token-mean`), or by " +
        'the same number for each rollout (`constant`). Default: `constant` for `dr-grpo`, which takes no other, else `rollout-mean`.',
    ),
  constantTokens: integer(1, 1_000_000, 'tokens')
    .optional()
    .describe('The number of tokens by which `constant` divides. Default: 1000.'),
  loss: oneOf(['importance_sampling', 'ppo', 'cispo']).default('ppo').describe('The loss function of the trainer.'),
  clipLow: number(0, 1).default(0.8).describe('The lower bound of the probability ratio.'),
  clipHigh: number(1, 100).default(1.2).describe('The upper bound of the probability ratio.'),
  klCoef: number(0, 10)
    .default(0)
    .describe('The weight of the KL penalty to the reference policy (version 0); 0 turns it off.'),
  learningRate: number(0, 1).default(1e-4).describe('The peak learning rate of AdamW.'),
  learningRateRise: learningRateRise.describe(
    'The number of first updates over which the learning rate rises linearly.',
  ),
  learningRateFall: learningRateFall.describe(
    'The number of last updates over which the learning rate falls linearly to 0.',
  ),
  adamEps: number(1e-15, 1).default(1e-8).describe("AdamW's epsilon. Gradients far below it change nothing."),
  gradClipNorm: number(0, 1e9).default(1).describe('The norm to which the gradient is clipped.'),
  zeroVariance: oneOf(['drop', 'keep'])
    .default('drop')
    .describe(
      'What happens to a group whose rewards are all equal: `drop` it, or `keep` it for its KL penalty. ' +
        'A step makes no update if all its groups are such groups and `klCoef` is 0.',
    ),
  checkpointEvery: integer(1, 1000, 'steps')
    .default(1)
    .describe(
      'The number of steps between two saved checkpoints; a lost trainer replays the steps since the last one.',
    ),
  loraRank: integer(1, 1024).default(16).describe('The rank of the LoRA adapter.'),
});
/** The settings of the policy's updates. */
export const training = trainingFields.superRefine(({ advantage, minStd, aggregation, constantTokens }, context) => {
  const refuse = (field: string, message: string): void => context.addIssue({ code: 'custom', path: [field], message });
  if (advantage === 'dr-grpo' && aggregation !== undefined && aggregation !== 'constant')
    refuse('aggregation', 'expected constant or nothing with the advantage dr-grpo, which has no length bias');
  if (minStd !== undefined && advantage !== 'grpo')
    refuse('minStd', `expected nothing with the advantage ${advantage}, which does not divide by a standard deviation`);
  if (constantTokens !== undefined && aggregationOf({ advantage, aggregation }) !== 'constant')
    refuse('constantTokens', 'expected nothing without the aggregation constant');
});
export type Training = z.output<typeof training>;

/** Returns the aggregation of these settings, which follows from the advantage if it is not given. */
export const aggregationOf = ({
  advantage,
  aggregation,
}: Pick<z.output<typeof trainingFields>, 'advantage' | 'aggregation'>): Aggregation =>
  aggregation ?? (advantage === 'dr-grpo' ? 'constant' : 'rollout-mean');

/** Supervised steps before the first update. */
export const warmUp = z.strictObject({
  steps: integer(1, 100_000, 'steps').describe('The number of supervised steps.'),
  examplesPerStep: integer(1, 4096, 'examples').default(32).describe('The number of examples in each step.'),
  learningRate: number(0, 1).default(1e-3).describe('The peak learning rate of AdamW.'),
  learningRateRise: learningRateRise.describe(
    'The number of first updates over which the learning rate rises linearly.',
  ),
  learningRateFall: learningRateFall.describe(
    'The number of last updates over which the learning rate falls linearly to 0.',
  ),
  rightShare: number(0, 1)
    .default(0.3)
    .describe('The share of demonstrations that make the right choice. The others make a mistake typical of the task.'),
  traces: z
    .array(z.string().regex(/^[0-9a-f]{64}$/, { error: 'expected the digest of a trace, 64 hexadecimal digits' }))
    .min(1)
    .max(1024)
    .optional()
    .describe(
      'The digests of sealed traces to learn from instead of demonstrations (`temper show <rollout> --json` names them: ' +
        '`result.trace.trace.digest`). Their trained tokens are used in the given order. Default: demonstrations.',
    ),
});
export type WarmUp = z.output<typeof warmUp>;

const runFields = z.strictObject({
  tasks: text('a task set, for example generated:train/1').describe('The address of the task set.'),
  steps: integer(1, 1_000_000, 'steps')
    .default(20)
    .describe('The number of steps. A step makes one optimizer update, or none if its groups teach nothing.'),
  groupsPerStep: integer(1, 256, 'groups').default(8).describe('The number of groups in the batch of a step.'),
  // The rewards of a group are compared with each other, so a group needs two.
  rolloutsPerGroup: integer(2, 32, 'rollouts').default(8).describe('The number of rollouts of each task.'),
  maxStaleness: integer(0, 64, 'steps')
    .default(1)
    .describe(
      'The number of steps that a group may lag behind the policy, and for which groups are started ahead. 0: strictly on-policy.',
    ),
  onStale: oneOf(['wait', 'cancel', 'withhold', 'keep'])
    .default('wait')
    .describe(
      'What happens to a group that would lag further behind: steps `wait` for it, so that none does; it is stopped (`cancel`); ' +
        'it ends and is not trained (`withhold`); or it is trained nonetheless (`keep`). `cancel` and `withhold` train less on ' +
        'tasks that take long.',
    ),
  seed: integer(0, 2 ** 31 - 1)
    .default(1)
    .describe('The seed of the task order, the initial weights and all sampling.'),
  onFlag: onFlag.optional(),
  settings: rolloutSettings
    .prefault({})
    .describe('How each rollout is done: the fields of a rollout from `agent` to `unscored`.'),
  training: training.prefault({}).describe('How the policy is updated.'),
  allowTruncatedSampling: z
    .literal(true, { error: 'expected true, or nothing' })
    .optional()
    .describe(
      'Set to `true` to train on tokens that were sampled with `topP` below 1 or with `topK`, though the trainer computes ' +
        'their logprobs over all tokens, which biases the updates. Default: such a run is refused.',
    ),
  warmUp: warmUp.optional().describe('Supervised steps before the first update. Default: none.'),
  pool: poolName
    .default(defaultPool)
    .describe(
      'The pool of engines that serves the policy: `default`, or one that `engines.json` names. A pool that publishes whole ' +
        'weights takes one run at a time, except the embedded policy server.',
    ),
  weight: weight.describe(
    'The weight of the run among the runs that want slots: of two with weights 3 and 1, the first holds three quarters.',
  ),
  budget: budget
    .optional()
    .describe(
      'The limits of what the run may use. When one is reached, no group starts, and the run pauses when those in flight ' +
        'have ended and their steps are made. Default: no limit.',
    ),
  leaveOut: leaveOut.describe(
    'Set to `true` to leave out the tasks that need more network than `TEMPER_NETWORK` allows; the status counts them. ' +
      'Default: the run is refused if its set has such tasks.',
  ),
  pauseAtInfraShare: number(0.1, 1)
    .default(0.9)
    .describe(
      'The run pauses itself when at least this share of its last 16 or more rollouts ended as `infra`. It also does when ' +
        'all of them ended as `invalid-task`.',
    ),
  pauseAtStaleGroups: integer(1, 1_000_000, 'groups')
    .optional()
    .describe(
      'The run pauses itself when this many groups were too stale to train on and no step was made meanwhile. Those that were ' +
        'stopped by hand do not count. Default: twice as many as it keeps in flight, which is ' +
        '2 × (`maxStaleness` + 1) × `groupsPerStep`, but at least 8.',
    ),
  pauseAtEmptySteps: integer(1, 1_000_000, 'steps')
    .default(5)
    .describe(
      'The run pauses itself when this many steps in a row made no update, because all their groups have equal rewards. ' +
        'Steps that were skipped by hand do not count.',
    ),
});

export const runInput = runFields.superRefine(({ settings: { sampling }, allowTruncatedSampling }, context) => {
  for (const { field, error: message } of refusedSampling(sampling, allowTruncatedSampling === true))
    context.addIssue({ code: 'custom', path: ['settings', 'sampling', field], message });
});
export type RunInput = z.output<typeof runInput>;
export type RunRequest = z.input<typeof runInput>;

/** A finished step as history holds it. The record `step-<n>` of the run lists its groups one by one. */
export interface StepResult {
  readonly step: number;
  /** The pinned batch; null when no group could be trained on. */
  readonly batch: BlobRef | null;
  readonly groups: Count<Fate>;
  /** The groups of the step whose rewards are all equal, whether they are dropped for that or not. */
  readonly equalGroups: Count<EqualRewards>;
  /** The number of rollouts in the batch. */
  readonly rollouts: number;
  /** The number of trained tokens in the batch. */
  readonly tokens: number;
  /** The mean over all scored rollouts of the step's groups. */
  readonly meanReward: number | null;
  /** The same with those of the groups that ended untrained since the last step. */
  readonly scoredReward: number | null;
  /** The largest staleness of a group in the batch, in steps. */
  readonly staleness: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** The failure because of which the step was skipped by hand; null for a step that was made. */
  readonly skippedBecause: string | null;
  /**
   * The groups that the step had, with their fates, if they are not those that the run gave it: Temporal's database was restored
   * to before the step's end, and the batch was pinned by then.
   */
  readonly pinned?: readonly (readonly [number, Fate])[];
}

/** The state of a run: the answer of the query `status`, and the result of the run. */
export interface RunStatus {
  readonly run: string;
  readonly runKey: string;
  readonly phase: 'preparing' | 'running' | 'paused' | 'cancelling' | 'cancelled' | 'done';
  /** The reason for the pause; null when the run is not paused. */
  readonly pausedBecause: string | null;
  /** The number of finished steps. */
  readonly step: number;
  readonly steps: number;
  /** The number of steps that made an update. */
  readonly updates: number;
  readonly policyVersion: number;
  /** The steps that were skipped by hand. Their versions have the weights of the version before. */
  readonly skippedSteps: readonly number[];
  /** Groups by fate; the sum is `groupsStarted`. */
  readonly groups: Count<Fate>;
  /** Rollouts by outcome. With those in flight the sum is `rolloutsStarted`. */
  readonly rollouts: Count<Outcome>;
  /** Suspected tricks in the rollouts of the groups that have reported. */
  readonly flags: FlagCounts;
  /** The number of tasks of the set that are left out, because they lack a network; absent if there are none. */
  readonly tasksLeftOut?: number;
  /** Set if the tests have no network because the input says so. */
  readonly offlineTests?: true;
  /** The tricks whose share among the last rollouts is larger than before. */
  readonly rising: readonly RisingTrick[];
  readonly groupsStarted: number;
  readonly rolloutsStarted: number;
  /** The numbers of the groups in flight. */
  readonly inFlight: readonly number[];
  /** The groups in flight that the next step waits for, so that they do not become too stale. */
  readonly waitsFor: readonly number[];
  /** The mean rewards of the last steps, oldest first. */
  readonly recentRewards: readonly number[];
  /** The fates and rewards of the last groups by how long they took. */
  readonly durations: GroupDurations;
  /** The start of the run, in milliseconds. */
  readonly startedAt: number;
  readonly cost: RunCost;
  readonly budget: { readonly limits: Budget; readonly used: BudgetUse };
}

/** The tasks of a run's set that it leaves out, because they lack a network. */
export interface TasksLeftOut {
  readonly tasks: number;
  /** A JSON list of their addresses. */
  readonly list: BlobRef;
}
