import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';

/** What temper starts and people may name in a command. */
export const workflowKinds = ['rollout', 'group', 'trainingRun', 'trainingStep', 'evaluationSweep', 'regrade'] as const;
export type WorkflowKind = (typeof workflowKinds)[number];

export interface FoundWorkflow {
  readonly kind: WorkflowKind;
  readonly handle: WorkflowHandle;
  readonly description: WorkflowExecutionDescription;
}

/** A workflow by its id. Throws with what to do when there is none, or when it is not one of ours. */
export async function findWorkflow(client: Client, id: string): Promise<FoundWorkflow> {
  const handle = client.workflow.getHandle(id);
  const description = await handle.describe().catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new Error(
      `expected the id of a run or a rollout, got ${JSON.stringify(id)}, which this server does not know; \`temper status\` lists them`,
    );
  });
  const kind = workflowKinds.find((one) => one === description.type);
  if (kind === undefined) {
    throw new Error(`expected one of ${workflowKinds.join(', ')}, got ${id}, which is a ${description.type}`);
  }
  return { kind, handle, description };
}

export const isOpen = ({ description }: FoundWorkflow): boolean => description.status.name === 'RUNNING';
