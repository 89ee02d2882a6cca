import type { Client } from '@temporalio/client';
import type { Config } from '../../infra/config.ts';
import { createGatewayControl } from '../../infra/gateway/client.ts';
import { controlSockets } from '../../infra/gateway/sockets.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';

/** What is at work: an activity, a workflow task or a turn of an agent. */
export interface Pending {
  readonly workflow: string;
  readonly what: string;
}

export const turn = 'a turn';
export const workflowTask = 'a workflow task';
/** Of an activity or a workflow task, in the server's description. */
const started = 2;

/** What of a run is at work now; nothing, while the server can't be asked. */
export async function pendingOf(client: Client, config: Config, runId: string): Promise<readonly Pending[]> {
  const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  const found: Pending[] = [];
  try {
    const query = `TemperRun="${runId}" AND ExecutionStatus="Running"`;
    for await (const { workflowId, type, runId: rollout } of client.workflow.list({ query })) {
      const { raw } = await client.workflow.getHandle(workflowId).describe();
      const activities = (raw.pendingActivities ?? []).filter(({ state }) => state === started);
      const names = activities.map(({ activityType }) => activityType?.name ?? '');
      if (raw.pendingWorkflowTask?.state === started) names.push(workflowTask);
      if (type === 'rollout' && names.includes('awaitAgent')) {
        const session = await gateway.status(sessionId({ rollout, epoch: 1 })).catch(() => null);
        if ((session?.inFlight ?? 0) > 0) names.push(turn);
      }
      for (const what of names) found.push({ workflow: workflowId, what });
    }
  } catch {
    // The server may be on its way back up; what is pending is read again.
  } finally {
    await gateway.end();
  }
  return found;
}
