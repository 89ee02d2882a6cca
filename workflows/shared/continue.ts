import { makeContinueAsNewFunc, type Workflow, workflowInfo } from '@temporalio/workflow';

/** Returns whether a workflow should continue as new: its history is long, or another version of the workers is current. */
export function shouldContinue(): boolean {
  const { continueAsNewSuggested, targetWorkerDeploymentVersionChanged } = workflowInfo();
  return continueAsNewSuggested || targetWorkerDeploymentVersionChanged;
}

/**
 * Continues as new, with the current version of the workers. Where workers have versions, a workflow stays with the one that
 * began it, and moves on only here.
 */
export function continueInNewest<Type extends Workflow>(...args: Parameters<Type>): Promise<never> {
  const { targetWorkerDeploymentVersionChanged } = workflowInfo();
  const options = targetWorkerDeploymentVersionChanged ? ({ initialVersioningBehavior: 'AUTO_UPGRADE' } as const) : {};
  return makeContinueAsNewFunc<Type>(options)(...args);
}
