import { z } from 'zod';
import type { RunStatus } from './run.ts';
import type { WorkflowEnd } from './workflow-end.ts';

/** The format of the records of starts. A reader refuses another one. */
export const startFormat = 1;

/** The kinds of workflow whose start is recorded. A rollout has a record of its own. */
const startedKinds = ['trainingRun', 'evaluationSweep', 'regrade', 'group'] as const;
export type StartedKind = (typeof startedKinds)[number];

/**
 * The record of a run, sweep, regrade or group by hand that was started: by it, its other records are found from its workflow id
 * without the Temporal server.
 */
export const startRecord = z.object({
  format: z.literal(startFormat),
  kind: z.enum(startedKinds),
  /** The workflow id. */
  id: z.string(),
  /** The key, which is the id of its first execution. */
  key: z.string(),
  /** The time of its start in milliseconds since the epoch. */
  startedAt: z.number(),
  input: z.unknown(),
});
export type StartRecord = z.output<typeof startRecord>;

/** The end of a run, by its record. A run that was terminated has none. */
export interface RunEnd {
  readonly status: RunStatus;
  /** The reason why it has no result; null if it has one. */
  readonly end: WorkflowEnd | null;
  readonly endedAt: number;
}
