import type { UnsupportedReason } from '../sandbox.ts';
import { isForbidden } from './answers.ts';
import type { Cluster } from './client.ts';
import { tryPod } from './describe.ts';
import type { KubernetesSettings } from './settings.ts';

/** The time for which a namespace that takes Pods whose agent is root is not asked again. */
const allowedMs = 60_000;

/**
 * Creates the function that returns the reason why a namespace takes no Pod of a task whose agent is root, such as its level of Pod
 * Security. It has the API server check a Pod that it does not make. An API server that does not answer has refused nothing.
 */
export function createRootCheck(
  settings: KubernetesSettings,
  open: () => Promise<Cluster>,
): (task: string) => Promise<UnsupportedReason | undefined> {
  let allowedUntilMs = 0;
  return async (task) => {
    if (performance.now() < allowedUntilMs) return undefined;
    try {
      await tryPod(await open(), settings, { root: true });
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const message = `the agent of task ${task} is to be root of its container (user = "root"), which namespace ${settings.namespace} forbids; use a namespace of the Pod Security level baseline (${error.evidence})`;
      return { type: 'UnsupportedTask', message };
    }
    allowedUntilMs = performance.now() + allowedMs;
    return undefined;
  };
}
