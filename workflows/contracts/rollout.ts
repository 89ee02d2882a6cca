import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import type { Diff } from './diff.ts';
import type { FailureRecord } from './failures.ts';
import { integer, number, oneOf, text } from './input.ts';
import type { Outcome, StopReason } from './outcome.ts';
import { rewardPolicies } from './resolution.ts';
import type { ResolvedTask, Task } from './task.ts';
import type { TraceSummary } from './trace.ts';
import { upstreamName } from './upstream.ts';
import type { Verdict } from './verdict.ts';

/** The stages of a rollout, in order; each is one visible activity. `prepareImage` is only for images that a host can fetch. */
export const stages = [
  'resolveTask',
  'prepareImage',
  'placeRollout',
  'openTrace',
  'provisionSandbox',
  'startAgent',
  'awaitAgent',
  'captureDiff',
  'sealTrace',
  'releaseSandbox',
  'evaluate',
  'reward',
] as const;
export type Stage = (typeof stages)[number];

export const blobRef: z.ZodType<BlobRef> = z.strictObject({
  digest: z.string().regex(/^[0-9a-f]{64}$/, { error: 'expected a sha256 in lower-case hex' }),
  size: integer(0, Number.MAX_SAFE_INTEGER, 'bytes'),
  mediaType: text('a media type'),
});

const task: z.ZodType<Task> = z.strictObject({
  id: text('a task id'),
  bundle: blobRef,
  image: text('an image name'),
  imageFrom: z.exactOptional(oneOf(['registry', 'dockerfile'])),
  workdir: z.string().startsWith('/', { error: 'expected an absolute path' }),
  agentTimeoutSec: z.nullable(number(1, 1_000_000, 'seconds')),
  evaluationTimeoutSec: z.nullable(number(1, 1_000_000, 'seconds')),
  cpus: number(0.01, 1024),
  memoryMb: number(16, 10_000_000, 'MB'),
  diskMb: number(1, 100_000_000, 'MB'),
});

const branchRule = z.strictObject({
  train: oneOf(['final', 'all']).default('all'),
  maxSegments: z.nullable(integer(1, 1_000_000, 'segments')).default(null),
  maxSegmentTokens: z.nullable(integer(1, 100_000_000, 'tokens')).default(null),
});

const resolvedTask: z.ZodType<ResolvedTask> = z.strictObject({
  task,
  usesModel: z.boolean(),
  branches: z.exactOptional(branchRule),
});

export const sampling = z.strictObject({
  temperature: number(0, 10).default(1),
  topP: number(0, 1).gt(0, { error: 'expected a number above 0, at most 1' }).default(1),
  topK: integer(-1, 1_000_000).default(-1),
  maxTokensPerTurn: integer(1, 1_000_000, 'tokens').default(4096),
  overridable: z.exactOptional(z.boolean()),
});

/** How each rollout is done; the same for a rollout started by hand, by a group, by a run. */
export const rolloutSettings = z.strictObject({
  agent: text('the name of an agent, for example mini').default('mini'),
  sandbox: oneOf(['auto', 'docker', 'local']).default('auto'),
  /** Overrides the task's own limit; default: the task's, else 1,800 s. */
  agentTimeoutSec: number(1, 1_000_000, 'seconds').optional(),
  /** Overrides the task's own limit; default: the task's, else 600 s. */
  evaluationTimeoutSec: number(1, 1_000_000, 'seconds').optional(),
  /** When the reaper may take the sandbox; default: above the sum of the two limits. */
  sandboxLifetimeSec: number(1, 10_000_000, 'seconds').optional(),
  maxTurns: integer(1, 100_000, 'turns').default(100),
  /** What its model calls may sample in all; the turn that reaches it is the last. Default: no limit. */
  maxSampledTokens: integer(1, 1_000_000_000, 'tokens').optional(),
  sampling: sampling.prefault({}),
  /** Which branches of a trace are trained; default: the agent's own rule. */
  branches: branchRule.optional(),
  /** What the verdict on a log of tests is worth. Tests that write a reward write it themselves. */
  rewardPolicy: oneOf(rewardPolicies).default('binary'),
  /** Ends of an agent that a run does not score: the rollout is then `cancelled` with that reason, and counted. */
  unscored: z
    .array(oneOf(['deadline', 'context-overflow']))
    .max(2)
    .default([]),
});
export type RolloutSettings = z.output<typeof rolloutSettings>;

/** The run that a rollout belongs to. */
export const membership = z.strictObject({
  /** Workflow id of the run, to which groups report. */
  run: text('the workflow id of a run'),
  /** The run's firstExecutionRunId: a new run of the same name never mixes with it. */
  runKey: text('a run key'),
  group: text('a group id'),
  /** Number of the group within its run. */
  index: integer(0, 1_000_000_000),
  /** Policy version at admission. */
  admittedVersion: integer(0, 1_000_000_000),
});
export type Membership = z.output<typeof membership>;

export const rolloutInput = z
  .strictObject({
    task: z.union([text('a task address, for example generated:train/1/0'), resolvedTask], {
      error: 'expected a task address, for example "generated:train/1/0"',
    }),
    ...rolloutSettings.shape,
    purpose: oneOf(['training', 'evaluation']).default('training'),
    /** Sampled by this version where the engines hold several; default: by the newest. */
    policyVersion: integer(0, 1_000_000_000).optional(),
    /** Answered by this upstream model instead of the policy. Never in training. */
    upstream: upstreamName.optional(),
    /** An evaluation takes a cached verdict where there is one, and keeps its own. Never in training. */
    reuseVerdicts: z.literal(true, { error: 'expected true, or nothing' }).optional(),
    member: membership.optional(),
  })
  .refine(({ purpose, reuseVerdicts }) => reuseVerdicts === undefined || purpose === 'evaluation', {
    path: ['reuseVerdicts'],
    error: 'expected it with purpose "evaluation" alone: training evaluates every diff',
  })
  .refine(({ purpose, upstream }) => upstream === undefined || purpose === 'evaluation', {
    path: ['upstream'],
    error: 'expected it with purpose "evaluation" alone: an upstream model tells no token ids to train on',
  })
  .refine(({ policyVersion, upstream }) => upstream === undefined || policyVersion === undefined, {
    path: ['upstream'],
    error: 'expected it without policyVersion: one of the two is evaluated',
  });
export type RolloutInput = z.output<typeof rolloutInput>;
/** What people type: everything but the task has a default. */
export type RolloutRequest = z.input<typeof rolloutInput>;

export interface RolloutResult {
  /** firstExecutionRunId of the rollout's workflow: unique for all time. */
  readonly rollout: string;
  readonly workflowId: string;
  readonly task: string;
  readonly agent: string;
  readonly outcome: Outcome;
  /** In [0, 1]; null unless `scored`. */
  readonly reward: number | null;
  readonly stop: StopReason | null;
  readonly failure: FailureRecord | null;
  readonly trace: TraceSummary | null;
  readonly diff: Diff | null;
  readonly verdict: Verdict | null;
  readonly agentLog: BlobRef | null;
  readonly bundle: BlobRef | null;
  /** How often it was moved to a fresh sandbox, 1 when never. */
  readonly epochs: number;
  readonly stageSeconds: Readonly<Partial<Record<Stage, number>>>;
}
