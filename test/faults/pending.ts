import type { Client } from '@temporalio/client';
import { createGatewayControl } from '../../infra/gateway/client.ts';
import { controlSockets } from '../../infra/gateway/sockets.ts';
import type { Config } from '../../infra/settings/config.ts';
import type { PartKind } from '../../workers/up/part.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';

/** Work in progress: an activity, a workflow task or a turn of an agent. */
export interface Pending {
  readonly workflow: string;
  readonly what: string;
}

export const turn = 'a turn';
const workflowTask = 'a workflow task';
/** The work of which some must be pending when a part is killed, so that the kill interrupts it. */
export const busyWith: Readonly<Record<PartKind | 'postgresql', readonly string[]>> = {
  control: [workflowTask, 'chooseTask', 'recordGroup', 'gatherBatch', 'normalise', 'recordStep'],
  host: ['awaitAgent', 'provisionSandbox', 'captureDiff', 'openTrace', 'sealTrace'],
  gateway: [turn],
  policy: [turn],
  trainer: ['update', 'syncWeights'],
  temporal: ['awaitAgent', 'provisionSandbox', 'evaluate'],
  postgresql: ['awaitAgent', 'provisionSandbox', 'evaluate'],
};
/** The workflows that wait for such work. */
export const busyIn: Readonly<Record<PartKind | 'postgresql', readonly string[]>> = {
  control: ['trainingStep', 'trainingRun', 'group', 'rollout'],
  host: ['rollout'],
  gateway: ['rollout'],
  policy: ['rollout'],
  trainer: ['trainingStep', 'trainingRun'],
  temporal: ['rollout'],
  postgresql: ['rollout'],
};
/** The state of a started activity or workflow task in the server's description. */
const started = 2;
/** The epochs that a rollout may reach: it begins again when its sandbox is lost. */
const epochs = [1, 2, 3, 4];

/**
 * Lists the work in progress of a run, one piece at a time: each workflow is described only when the caller wants more. Empty
 * while the server is unreachable.
 */
export async function* pendingOf(
  client: Client,
  config: Config,
  runId: string,
  types: readonly string[],
): AsyncGenerator<Pending> {
  const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  try {
    const of = types.map((type) => `"${type}"`).join(', ');
    const query = `TemperRun="${runId}" AND ExecutionStatus="Running" AND WorkflowType IN (${of})`;
    for await (const { workflowId, type, runId: rollout } of client.workflow.list({ query })) {
      const { raw } = await client.workflow.getHandle(workflowId).describe();
      const activities = (raw.pendingActivities ?? []).filter(({ state }) => state === started);
      const names = activities.map(({ activityType }) => activityType?.name ?? '');
      if (raw.pendingWorkflowTask?.state === started) names.push(workflowTask);
      if (type === 'rollout' && names.includes('awaitAgent')) {
        const asked = epochs.map((epoch) => gateway.status(sessionId({ rollout, epoch })).catch(() => null));
        if ((await Promise.all(asked)).some((session) => (session?.inFlight ?? 0) > 0)) names.push(turn);
      }
      for (const what of names) yield { workflow: workflowId, what };
    }
  } catch {
    // The server may be restarting; the caller asks again.
  } finally {
    await gateway.end();
  }
}
