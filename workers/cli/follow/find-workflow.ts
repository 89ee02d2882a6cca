import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';

/** Kinds of workflow that a user may name in a command. */
const workflowKinds = ['rollout', 'group', 'trainingRun', 'trainingStep', 'evaluationSweep', 'regrade'] as const;
export type WorkflowKind = (typeof workflowKinds)[number];

export interface FoundWorkflow {
  readonly kind: WorkflowKind;
  readonly handle: WorkflowHandle;
  readonly description: WorkflowExecutionDescription;
}

/** Finds a workflow by its id. Throws if the server does not know the id, or if the workflow is not one of temper's. */
export async function findWorkflow(client: Client, id: string): Promise<FoundWorkflow> {
  const found = await findIfKnown(client, id);
  if (found === null) throw unknownWorkflow(id);
  return found;
}

/** Finds a workflow by its id; null if the server does not know the id. Throws if it is not one of temper's. */
export async function findIfKnown(client: Client, id: string): Promise<FoundWorkflow | null> {
  const handle = client.workflow.getHandle(id);
  const description = await handle.describe().catch((error: unknown) => {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  });
  if (description === null) return null;
  const kind = workflowKinds.find((one) => one === description.type);
  if (kind === undefined) {
    throw new Error(`${id} is a ${description.type}; expected one of ${workflowKinds.join(', ')}`);
  }
  return { kind, handle, description };
}

export const unknownWorkflow = (id: string): Error =>
  new Error(
    `this server knows no workflow with the id ${JSON.stringify(id)}; \`temper status\` lists the ids of runs and rollouts`,
  );

export const isOpen = ({ description }: FoundWorkflow): boolean => description.status.name === 'RUNNING';
