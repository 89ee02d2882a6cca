import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { z } from 'zod';
import { type RolloutRecords, recordKey } from '../../../infra/store/rollout-records.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { RegradeInput } from '../../../workflows/contracts/regrade.ts';

/** A rollout that has ended, by the key of its record. */
export const finishedRef = z.object({ record: z.string() });
export type FinishedRef = z.output<typeof finishedRef>;

export interface FinishedSources {
  readonly client: Pick<Client, 'workflow'>;
  readonly rollouts: Pick<RolloutRecords, 'find' | 'list'>;
}

/**
 * Lists the rollouts that an input names and that have ended, as their records alone say. Those of a run come in the order of the
 * store, one page of its list at a time: there may be a million.
 */
export async function* listFinished(
  sources: FinishedSources,
  { run, rollouts }: Pick<RegradeInput, 'run' | 'rollouts'>,
): AsyncIterable<FinishedRef> {
  if (rollouts !== undefined) {
    yield* await Promise.all(rollouts.map((id) => finishedNamed(sources, id)));
    return;
  }
  let isEmpty = true;
  for await (const { key: record } of sources.rollouts.list(run)) {
    isEmpty = false;
    yield { record };
  }
  if (isEmpty) throw noneOf(run);
}

/** Throws `InvalidInput` if a regrade has no rollouts to grade, or if one of those that it names has no result. */
export async function requireFinished(
  sources: FinishedSources,
  input: Pick<RegradeInput, 'run' | 'rollouts'>,
): Promise<void> {
  if (input.rollouts !== undefined) {
    await Promise.all(input.rollouts.map((id) => finishedNamed(sources, id)));
    return;
  }
  // Of a run, the first rollout suffices.
  for await (const _ of sources.rollouts.list(input.run)) return;
  throw noneOf(input.run);
}

async function finishedNamed({ client, rollouts }: FinishedSources, workflowId: string): Promise<FinishedRef> {
  const record = await rollouts.find({ workflowId });
  if (record !== null) return { record: recordKey(workflowId, record.result.rollout) ?? '' };
  const description = await client.workflow
    .getHandle(workflowId)
    .describe()
    .catch((error: unknown) => {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    });
  if (description?.type !== 'rollout') {
    const got =
      description === null ? 'which has no record, and this server does not know' : `which is a ${description.type}`;
    throw refused(`rollouts: expected workflow ids of rollouts, got ${workflowId}, ${got}`);
  }
  const status = description.status.name.toLowerCase();
  throw refused(`rollouts: expected rollouts that have a result, got ${workflowId}, which is ${status}`);
}

const noneOf = (run = 'none'): TemperFailure =>
  refused(`run: expected a run with rollouts that have ended, got ${run}; \`temper status\` lists the runs`);

const refused = (message: string): TemperFailure => new TemperFailure('InvalidInput', `regrade: ${message}`);
