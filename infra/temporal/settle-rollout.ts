import {
  type Client,
  type WorkflowExecutionDescription,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { endOfStatus, isClosedStatus, resultWithout } from '../../workflows/algorithms/rollout-end.ts';
import { rootMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type RolloutRecord, recordFormat } from '../../workflows/contracts/rollout-record.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { isUnreadable, type RolloutName, type RolloutRecords } from '../store/rollout-records.ts';

export interface SettleDependencies {
  readonly client: Pick<Client, 'workflow'>;
  readonly rollouts: Pick<RolloutRecords, 'find' | 'write'>;
}

/** A rollout that may have ended, with its task's address or id, for one that the server no longer knows. */
export interface RolloutToSettle extends RolloutName {
  readonly task: string;
}

/**
 * Returns the record of a rollout, or null while it runs. A rollout writes its own record before its workflow closes. One that
 * could not, since it was terminated, never started or has vanished from the server, gets it here, by the first who asks.
 */
export async function settleRollout(
  { client, rollouts }: SettleDependencies,
  { task, ...name }: RolloutToSettle,
): Promise<RolloutRecord | null> {
  const before = await findReadable(rollouts, name);
  if (before !== null && !(before instanceof TemperFailure)) return before;
  const description = await describe(client, name);
  if (description !== null && !isClosedStatus(description.status.name)) return null;
  if (before !== null) return instead(await recordOf(client, name, task, description), description, before);
  // It may have written its record between the two looks.
  return (await rollouts.find(name)) ?? rollouts.write(await recordOf(client, name, task, description));
}

/** Finds a record; returns the failure if it can't be read. */
const findReadable = (
  rollouts: SettleDependencies['rollouts'],
  name: RolloutName,
): Promise<RolloutRecord | TemperFailure | null> =>
  rollouts.find(name).catch((error: unknown) => {
    if (isUnreadable(error)) return error;
    throw error;
  });

/** Returns what stands for a record that can't be read, and is not replaced: what the server knows of its rollout, or the failure. */
function instead(
  known: RolloutRecord,
  description: WorkflowExecutionDescription | null,
  { type, message }: TemperFailure,
): RolloutRecord {
  if (description !== null) return known;
  return { ...known, result: { ...known.result, outcome: 'infra', failure: { type, message } } };
}

async function recordOf(
  client: Pick<Client, 'workflow'>,
  name: RolloutName,
  task: string,
  description: WorkflowExecutionDescription | null,
): Promise<RolloutRecord> {
  const known = { format: recordFormat, writer: 'reader' } as const;
  const { workflowId } = name;
  if (description === null) {
    const gone = { rollout: name.rollout ?? workflowId, workflowId, task, agent: '' };
    return { ...known, result: resultWithout(gone, 'gone') };
  }
  const { runId, raw, startTime, closeTime, typedSearchAttributes: attributes } = description;
  const times = {
    startedAt: startTime.getTime(),
    ...(closeTime !== undefined && { endedAt: closeTime.getTime() }),
  };
  const handle = client.workflow.getHandle(workflowId, runId);
  const { name: status } = description.status;
  if (status === 'COMPLETED') return { ...known, ...times, result: (await handle.result()) as RolloutResult };
  const ended = {
    rollout: raw.workflowExecutionInfo?.firstRunId || runId,
    workflowId,
    task: attributes.get(searchAttributes.task) ?? task,
    agent: attributes.get(searchAttributes.agent) ?? '',
  };
  const why = status === 'FAILED' ? await messageOf(handle) : undefined;
  return { ...known, ...times, result: resultWithout(ended, endOfStatus(status), why) };
}

async function messageOf(handle: WorkflowHandle): Promise<string | undefined> {
  try {
    await handle.result();
    return undefined;
  } catch (error) {
    if (error instanceof WorkflowFailedError) return rootMessage(error);
    throw error;
  }
}

/** Describes the newest workflow of this id, or the one with that key if the id was used again. */
async function describe(
  client: Pick<Client, 'workflow'>,
  { workflowId, rollout }: RolloutName,
): Promise<WorkflowExecutionDescription | null> {
  const found = await unlessUnknown(client.workflow.getHandle(workflowId).describe());
  const first = found?.raw.workflowExecutionInfo?.firstRunId || found?.runId;
  if (rollout === undefined || first === undefined || first === rollout) return found;
  return unlessUnknown(client.workflow.getHandle(workflowId, rollout).describe());
}

async function unlessUnknown<Found>(found: Promise<Found>): Promise<Found | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
