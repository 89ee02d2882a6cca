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

/** The factor by which a history may grow beyond the length at which the server suggests to continue as new. */
const roomFactor = 3;

/**
 * Creates a look at whether a workflow that can't continue as new yet has room in its history. By default the server suggests to
 * continue at 4,096 events, and ends a workflow at 51,200: what is in flight by then needs room for its ends.
 */
export function createHistoryRoom(): () => boolean {
  let suggestedAt: number | null = null;
  return () => {
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested) suggestedAt ??= historyLength;
    return suggestedAt === null || historyLength < roomFactor * suggestedAt;
  };
}
