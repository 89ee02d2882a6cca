import { z } from 'zod';
import { outcomes, stopReasons } from './outcome.ts';
import type { RegradeRow } from './regrade.ts';
import type { RolloutInput, RolloutResult } from './rollout.ts';

/** The format of the records of rollouts and regrades. A reader refuses another one. */
export const recordFormat = 1;

/** The writers of a rollout's record: the rollout itself, or for one that could not, a reader that found that it had ended. */
const writers = ['rollout', 'reader'] as const;

/**
 * The record of a rollout that has ended: one object in the store, written once. It has all that its workflow returned, and what a
 * regrade needs of its input, so that readers need not ask the Temporal server.
 */
export const rolloutRecord = z.looseObject({
  format: z.literal(recordFormat),
  writer: z.enum(writers),
  result: z.looseObject({
    rollout: z.string(),
    workflowId: z.string(),
    task: z.string(),
    agent: z.string(),
    outcome: z.enum(outcomes),
    reward: z.number().nullable(),
    stop: z.enum(stopReasons).nullable(),
  }),
});

export interface RolloutRecord {
  readonly format: typeof recordFormat;
  readonly writer: (typeof writers)[number];
  readonly result: RolloutResult;
  /** The membership in a run; absent outside of runs. */
  readonly member?: RolloutInput['member'];
  readonly purpose?: RolloutInput['purpose'];
  /** The part of its input that concerns the evaluation. Absent in the record of a rollout that could not write it. */
  readonly evaluation?: EvaluationSettings;
  /** The times of its start and its end in milliseconds since the epoch, as far as they are known. */
  readonly startedAt?: number;
  readonly endedAt?: number;
}

/** The settings of a rollout's evaluation, which a regrade repeats. */
export interface EvaluationSettings
  extends Pick<RolloutInput, 'sandbox' | 'rewardPolicy' | 'evaluationTimeoutSec' | 'offlineTests'> {
  /** The address of the task, if the rollout was given one and not the task itself. */
  readonly address?: string;
}

/** The shape of the record of a regrade. */
export const regradeRecord = z.looseObject({
  format: z.literal(recordFormat),
  regrade: z.string(),
  regradeKey: z.string(),
  row: z.looseObject({ state: z.string(), before: z.number().nullable(), after: z.number().nullable() }),
  recordedAt: z.number(),
});

/** The record of grading a rollout again, beside the rollout's own. */
export interface RegradeRecord {
  readonly format: typeof recordFormat;
  /** The workflow id of the regrade, and its key. */
  readonly regrade: string;
  readonly regradeKey: string;
  readonly row: RegradeRow;
  readonly recordedAt: number;
}
