import { ActivityNotFoundError, type Client, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type proto from '@temporalio/proto';
import { hostQueue } from '../../workflows/contracts/queues.ts';
import { forRolloutsOf } from './rollouts-of-host.ts';

/** The heartbeat timeout from which the death of a worker would be noticed too late by the missing heartbeats alone. */
const longHeartbeatSec = 60;
/** A value of `temporal.api.enums.v1.PendingActivityState`. */
const startedState = 2;
/** The type of failure of an attempt that is returned. It is no failure of a stage, because another attempt follows. */
export const workerKilled = 'WorkerKilled';

export interface HostWorker {
  readonly host: string;
  /** The identity of this process at the server, which no earlier process had. */
  readonly identity: string;
}

/**
 * Returns to the server the activity attempts that earlier worker processes of a host have left, so that it starts others at
 * once instead of after a heartbeat timeout. Returns their number. The server knows each of them, also one that it gave out at
 * the moment at which the worker was killed. An attempt that this process begins meanwhile may be returned as well, which costs
 * nothing but another attempt.
 */
export async function returnLeftAttempts(
  client: Pick<Client, 'workflow' | 'activity'>,
  worker: HostWorker,
): Promise<number> {
  const returned = await forRolloutsOf(client, worker.host, (rollout) => returnAttempts(client, worker, rollout));
  return returned.reduce((sum, count) => sum + count, 0);
}

async function returnAttempts(
  client: Pick<Client, 'activity'>,
  worker: HostWorker,
  rollout: WorkflowHandle,
): Promise<number> {
  try {
    const { raw, runId } = await rollout.describe();
    const left = (raw.pendingActivities ?? []).filter((activity) => isLeft(activity, worker));
    for (const { activityId } of left) {
      if (activityId) await client.activity.fail({ workflowId: rollout.workflowId, runId, activityId }, killed());
    }
    return left.length;
  } catch (error) {
    // It has ended meanwhile.
    if (error instanceof ActivityNotFoundError || error instanceof WorkflowNotFoundError) return 0;
    throw error;
  }
}

type PendingActivity = proto.temporal.api.workflow.v1.IPendingActivityInfo;

/** Whether an earlier process of the host got an attempt. No other host polls the queue of this one. */
function isLeft({ state, activityOptions, lastWorkerIdentity }: PendingActivity, worker: HostWorker): boolean {
  return (
    state === startedState &&
    activityOptions?.taskQueue?.name === hostQueue(worker.host) &&
    Number(String(activityOptions.heartbeatTimeout?.seconds ?? 0)) >= longHeartbeatSec &&
    lastWorkerIdentity !== worker.identity
  );
}

const killed = (): ApplicationFailure =>
  ApplicationFailure.create({
    type: workerKilled,
    message: 'the worker process that had this attempt was killed; the one after it has returned the attempt',
    nextRetryDelay: '100ms',
  });
