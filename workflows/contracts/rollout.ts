import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import type { RolloutCost } from './cost.ts';
import type { Diff } from './diff.ts';
import type { FailureRecord } from './failures.ts';
import type { Flag } from './flags.ts';
import { hostToolNames } from './host-tools.ts';
import { integer, number, oneOf, text, versionNumber } from './input.ts';
import type { NetworkUse } from './network.ts';
import type { Outcome, StopReason } from './outcome.ts';
import { policyRef, poolName } from './policy.ts';
import { sandboxChoices } from './sandbox-kinds.ts';
import type { Snapshot } from './snapshot.ts';
import { resolvedTask } from './task.ts';
import { branchRule, sampling, type TraceSummary } from './trace.ts';
import { upstreamName } from './upstream.ts';
import type { Verdict } from './verdict.ts';

/**
 * The stages of a rollout, in order. Each is one activity, but for the first and the last, and for `startAgent` and mostly
 * `captureDiff`, which share that of `awaitAgent`. `adoptSandbox` may come after any that follow it.
 */
export const stages = [
  'resolveTask',
  'prepareImage',
  'placeRollout',
  'openTrace',
  'provisionSandbox',
  'adoptSandbox',
  'startAgent',
  'awaitAgent',
  'captureDiff',
  'sealTrace',
  'releaseSandbox',
  'evaluate',
  'reward',
] as const;
export type Stage = (typeof stages)[number];

/** One sentence on each stage. */
export const stageDescriptions: Readonly<Record<Stage, string>> = {
  resolveTask: 'Looks the task up by its address.',
  prepareImage: "Pulls or builds the images, for tasks with services, or whose own or tests' image the host can get.",
  placeRollout: 'Waits for a host with a free slot.',
  openTrace: 'Opens the session at the gateway.',
  provisionSandbox: 'Creates the sandbox with the workspace.',
  adoptSandbox: 'Takes the sandbox and the session over from a lost host, at whatever stage that was.',
  startAgent: 'Starts the agent in the sandbox.',
  awaitAgent: 'Waits until the agent ends or reaches its time limit.',
  captureDiff: 'Stores what the agent changed.',
  sealTrace: 'Closes the session and stores its trace.',
  releaseSandbox: 'Removes the sandbox and frees its slot.',
  evaluate: 'Runs the hidden tests against the diff in a fresh sandbox.',
  reward: 'Computes the reward from the verdict.',
};

/** Options of an agent. They are part of several values of a history, which bounds their size. */
export const agentOptions = z
  .record(z.string(), z.unknown(), { error: 'expected an object with the options of the agent' })
  .refine((options) => JSON.stringify(options).length <= 4000, { error: 'expected at most 4000 characters of JSON' });
export type AgentOptions = Readonly<z.output<typeof agentOptions>>;

/** The settings of a rollout; the same for one that is started by hand, by a group or by a run. */
export const rolloutSettings = z.strictObject({
  agent: text('the name of an agent, for example mini').default('mini').describe('The name of the agent.'),
  agentOptions: agentOptions
    .optional()
    .describe(
      'Options of the agent by name, checked by its own schema; `temper agents show NAME` lists them. At most 4000 characters as JSON. Default: none.',
    ),
  sandbox: oneOf(sandboxChoices)
    .default('auto')
    .describe(
      'The kind of sandbox. `auto` takes the first kind that is ready and supports the task. A task without files of its ' +
        'own has them in its image and needs `docker`.',
    ),
  agentTimeoutSec: number(1, 1_000_000, 'seconds')
    .optional()
    .describe("The time limit of the agent in seconds. Default: the task's own limit, else 1800."),
  engineWaitingSec: number(0, 1_000_000, 'seconds')
    .default(3600)
    .describe(
      'The longest time in seconds for which the clock of the agent stands still, because its model calls wait for a free ' +
        'slot of an engine, or for one that is paused, loads weights or is away. An agent that has waited longer when its ' +
        'time is over is not scored: its rollout is `infra`. Less where sandboxes may not live that long (E2B). ' +
        '0: the clock never stands still, and the agent is scored.',
    ),
  evaluationTimeoutSec: number(1, 1_000_000, 'seconds')
    .optional()
    .describe("The time limit of the tests in seconds. Default: the task's own limit, else 600."),
  sandboxLifetimeSec: number(1, 10_000_000, 'seconds')
    .optional()
    .describe(
      'The age in seconds at which the reaper may remove the sandbox, unless the rollout still runs. A value below the default is raised to it. ' +
        'Default: `agentTimeoutSec` + `engineWaitingSec` + `evaluationTimeoutSec` + 900.',
    ),
  maxTurns: integer(1, 100_000, 'turns').default(100).describe('The largest number of model calls.'),
  maxSampledTokens: integer(1, 1_000_000_000, 'tokens')
    .optional()
    .describe(
      'The largest number of tokens that all model calls together may sample. The turn that reaches it is the last. ' +
        'Default: no limit.',
    ),
  sampling: sampling.prefault({}).describe('How the engine samples.'),
  hostTools: hostToolNames
    .optional()
    .describe(
      'The host tools that the agent may call, for example `["submit"]`: tools at the gateway, which it reaches by MCP. ' +
        'Default: those that the task asks for.',
    ),
  branches: branchRule.optional().describe("Which branches of the trace are trained. Default: the agent's own rule."),
  offlineTests: z
    .literal(true, { error: 'expected true, or nothing' })
    .optional()
    .describe(
      'Set to `true` to run all tests without a network, also those that need one, which may then never pass. The result ' +
        'says so. Default: a task whose tests need more network than `TEMPER_NETWORK` allows is refused.',
    ),
  rewardPolicy: text('the name of a reward policy')
    .regex(/^[a-z][a-z0-9-]{0,39}$/, { error: 'expected up to 40 small letters, digits and hyphens' })
    .default('binary')
    .describe(
      'How results of a test log map to a reward: `binary`, `fraction` or `fail-to-pass`, which are ignored for tasks whose tests ' +
        'write the reward themselves, or the name of a reward of your own (`TEMPER_REWARDS`), which applies to each verdict.',
    ),
  unscored: z
    .array(oneOf(['deadline', 'context-overflow']))
    .max(2)
    .default([])
    .describe(
      'Ends of the agent that are not scored: such a rollout is `cancelled` with the failure `Excluded`, and counted. In a ' +
        'sweep it counts as a failure.',
    ),
});

export type RolloutSettings = z.output<typeof rolloutSettings>;

/** Whether a run or sweep leaves tasks out that lack a network, instead of being refused. */
export const leaveOut = z.literal(true, { error: 'expected true, or nothing' }).optional();

/** The run whose policy samples: its workflow id, or what a sweep has made of it. */
const policyOf = z.union([text('the workflow id of a run'), policyRef], {
  error: 'expected the workflow id of a run',
});

export const seed = text('a text').optional();

/** The run that a rollout belongs to. */
export const membership = z.strictObject({
  run: text('the workflow id of a run').describe('The workflow id of the run, to which the group reports.'),
  runKey: text('a run key').describe(
    "The run's first execution run id, so that a new run of the same name is another one.",
  ),
  group: text('a group id').describe('The workflow id of the group.'),
  index: integer(0, 1_000_000_000).describe('The number of the group within its run.'),
  admittedVersion: versionNumber.describe('The policy version when the group was admitted.'),
  pool: poolName.optional().describe('The pool of engines that serves the policy of the run. Default: `default`.'),
});

export const rolloutInput = z
  .strictObject({
    task: z
      .union([text('a task address, for example generated:train/1/0'), resolvedTask], {
        error: 'expected a task address, for example "generated:train/1/0"',
      })
      .describe('The address of the task.'),
    ...rolloutSettings.shape,
    purpose: oneOf(['training', 'evaluation']).default('training').describe('The purpose of the rollout.'),
    policy: policyOf
      .optional()
      .describe(
        'The workflow id of the run whose policy samples, outside of runs. Default: the run that is open or ended last.',
      ),
    policyVersion: versionNumber
      .optional()
      .describe(
        'The policy version that samples, where the engines serve several (LoRA adapters). Default: the newest.',
      ),
    upstream: upstreamName
      .optional()
      .describe(
        'The name of an upstream model that answers instead of the policy. Only with `purpose` `evaluation`, and not with ' +
          '`policyVersion`. Default: none.',
      ),
    reuseVerdicts: z
      .literal(true, { error: 'expected true, or nothing' })
      .optional()
      .describe(
        'Set to `true` to reuse a cached verdict where there is one and to cache the new one. Only with `purpose` ' +
          '`evaluation`. Default: every diff is evaluated.',
      ),
    seed: seed.describe(
      'The seed of its sampling; each epoch and each turn has its own number from it. Set by groups and sweeps. Default: its ' +
        'first execution run id, so that no other rollout has the same.',
    ),
    member: membership
      .optional()
      .describe('The run that the rollout belongs to. Set by groups, not by hand. Default: none.'),
  })
  .refine(({ purpose, reuseVerdicts }) => reuseVerdicts === undefined || purpose === 'evaluation', {
    path: ['reuseVerdicts'],
    error: 'expected it only with purpose "evaluation", because training evaluates every diff',
  })
  .refine(({ purpose, upstream }) => upstream === undefined || purpose === 'evaluation', {
    path: ['upstream'],
    error: 'expected it only with purpose "evaluation", because an upstream model returns no token ids to train on',
  })
  .refine(
    ({ policy, policyVersion, upstream }) =>
      upstream === undefined || (policyVersion === undefined && policy === undefined),
    { path: ['upstream'], error: 'expected it without policyVersion and policy: a rollout evaluates one of the two' },
  )
  .refine(({ policy, member }) => policy === undefined || member === undefined, {
    path: ['policy'],
    error: 'expected it outside of runs only, because the rollouts of a run sample its own policy',
  });
export type RolloutInput = z.output<typeof rolloutInput>;
/** The input as people write it: everything but the task has a default. */
export type RolloutRequest = z.input<typeof rolloutInput>;

const { maxTurns, maxSampledTokens, hostTools, branches, policyVersion } = rolloutInput.shape;

/** The part of a rollout's input that the gateway applies to the rollout's session. */
export const sessionSettings = z.strictObject({
  sampling,
  maxTurns,
  maxSampledTokens,
  hostTools,
  branches,
  policyVersion,
});
export type SessionSettings = Readonly<z.output<typeof sessionSettings>>;

/** One step of a task that has several, as it ran. */
export interface StepResult {
  readonly name: string;
  readonly reward: number;
  /** Null for a step that never began: its set-up failed after earlier steps, or an earlier step ended the task without a reward. */
  readonly stop: StopReason | null;
  readonly agentLog: BlobRef | null;
  /** The kind of the verdict of its tests, and their log. */
  readonly verdict?: Verdict['kind'];
  readonly log?: BlobRef;
  /** The work that its tests got, as of a whole rollout; absent for a step that never began. */
  readonly diff?: Omit<Diff, 'flags'>;
  readonly snapshot?: Snapshot;
  /** The use that its agent made of its network; absent if it had none. */
  readonly network?: Omit<NetworkUse, 'flags'>;
}

export interface RolloutResult {
  /** The firstExecutionRunId of the rollout's workflow: unique for all time. */
  readonly rollout: string;
  readonly workflowId: string;
  readonly task: string;
  readonly agent: string;
  /** The version of the agent; absent if no sandbox was provisioned, or for an agent of the user's own. */
  readonly agentVersion?: string;
  /** The options of the agent; absent without. */
  readonly agentOptions?: AgentOptions;
  readonly outcome: Outcome;
  /** The reward in [0, 1]; null unless `scored`. */
  readonly reward: number | null;
  readonly stop: StopReason | null;
  readonly failure: FailureRecord | null;
  readonly trace: TraceSummary | null;
  readonly diff: Diff | null;
  /** All that the agent changed in its sandbox; absent unless the tests of the task get that. */
  readonly snapshot?: Snapshot;
  /** The verdict on the agent's work; after the last step that was graded, if the task has several. */
  readonly verdict: Verdict | null;
  /** Set if the tests had no network because the input said so; absent else. */
  readonly offlineTests?: true;
  /** The steps whose rewards make that of the rollout, of a task that has several; absent for others. */
  readonly steps?: readonly StepResult[];
  /** The flags of all these steps, one for each trick; absent without. */
  readonly stepFlags?: readonly Flag[];
  readonly agentLog: BlobRef | null;
  /** The answer that the agent recorded by the host tool `answer`; absent without one. */
  readonly answer?: BlobRef;
  /** The use that the agent made of its network; absent if it had none. */
  readonly network?: NetworkUse;
  readonly bundle: BlobRef | null;
  /** The number of sandboxes that the agent was started in; 1 unless one was lost. */
  readonly epochs: number;
  /** The number of times that another host adopted its sandbox from a lost one; absent if none did. */
  readonly adoptions?: number;
  /** Remarks on its course for people, such as on lost hosts; absent if there are none. */
  readonly notes?: readonly string[];
  readonly stageSeconds: Readonly<Partial<Record<Stage, number>>>;
  /** Absent if it is unknown, since the rollout was terminated. */
  readonly cost?: RolloutCost;
}
