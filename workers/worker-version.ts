import type { WorkerOptions } from '@temporalio/worker';
import type { Config } from '../infra/settings/config.ts';

/**
 * Returns what makes a control worker a version of a Worker Deployment: each workflow is pinned to the version that began
 * it, and those that continue as new move on then.
 *
 * Host and trainer workers have no versions. Their activities take what every version of the workflows sends, and a sandbox
 * stays where it is: an agent would be stranded if the host worker of its rollout's version ended.
 */
export function versionOf(deployment: Config['deployment']): Pick<WorkerOptions, 'workerDeploymentOptions'> {
  if (deployment === null) return {};
  const { name: deploymentName, buildId } = deployment;
  return {
    workerDeploymentOptions: {
      version: { deploymentName, buildId },
      useWorkerVersioning: true,
      defaultVersioningBehavior: 'PINNED',
    },
  };
}
