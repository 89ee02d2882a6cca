import type { Priority } from '@temporalio/common';
import { type ActivityInterfaceFor, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import type {
  AdoptionActivities,
  CleanUpActivities,
  CreationActivities,
  EvaluationActivities,
  HostActivities,
  ImageActivities,
  PlacementActivities,
  SessionActivities,
} from '../activities/interfaces/host.ts';
import type { TrainerActivities } from '../activities/interfaces/trainer.ts';
import { agentGraceMs, imageMs, timeouts } from './activity-options.ts';
import {
  adoptionQueue,
  captureQueue,
  cleanUpQueue,
  controlQueue,
  creationQueue,
  evaluationQueue,
  hostQueue,
  imageQueue,
  ownEvaluationQueue,
  placementQueueOf,
  provisionQueue,
  trainerQueue,
} from './contracts/queues.ts';
import type { SandboxKind } from './contracts/sandbox-kinds.ts';
import { evaluationGraceMs, startMs } from './contracts/stage-limits.ts';

/* The activities as workflows call them: on which queue, and with which limits. */
export const control = proxyActivities<ControlActivities>({ taskQueue: controlQueue, ...timeouts.light });
/** Work of milliseconds that runs within a workflow task: it costs the server one write instead of five. */
export const inWorkflowTask = proxyLocalActivities<
  Pick<ControlActivities, 'resolveTask' | 'recordRollout' | 'endedRollouts'>
>(timeouts.inWorkflowTask);
/** The record of a rollout, where the store was not ready for it within the workflow task, and that of a run's end. */
export const recording = proxyActivities<Pick<ControlActivities, 'recordRollout' | 'recordRunEnd'>>({
  taskQueue: controlQueue,
  ...timeouts.record,
});
export const triggering = proxyActivities<Pick<ControlActivities, 'triggerSchedules'>>({
  taskQueue: controlQueue,
  ...timeouts.trigger,
});
export const batches = proxyActivities<ControlActivities>({ taskQueue: controlQueue, ...timeouts.batch });
export const images = proxyActivities<ImageActivities>({ taskQueue: imageQueue, ...timeouts.image });
export const placement = (priority: Priority | undefined): Proxied<PlacementActivities> =>
  proxyActivities<PlacementActivities>({ taskQueue: placementQueueOf(priority), ...timeouts.place });
export const creation = proxyActivities<CreationActivities>({ taskQueue: creationQueue, ...timeouts.creation });
export const trainer = proxyActivities<TrainerActivities>({ taskQueue: trainerQueue, ...timeouts.train });
export const restoring = proxyActivities<Pick<TrainerActivities, 'restoreWeights'>>({
  taskQueue: trainerQueue,
  ...timeouts.restore,
});

export type Proxied<Activities> = ActivityInterfaceFor<Activities>;

export const provisioningOn = (host: string): Proxied<Pick<HostActivities, 'provisionSandbox'>> =>
  proxyActivities<HostActivities>({ taskQueue: provisionQueue(host), ...timeouts.heavy, startToCloseTimeout: imageMs });

export const capturingOn = (host: string): Proxied<Pick<HostActivities, 'captureDiff'>> =>
  proxyActivities<HostActivities>({ taskQueue: captureQueue(host), ...timeouts.heavy });
export const capturingAllOn = (host: string): Proxied<Pick<HostActivities, 'captureSnapshot'>> =>
  proxyActivities<HostActivities>({ taskQueue: captureQueue(host), ...timeouts.snapshot });

export const sessionsOn = (host: string): Proxied<Pick<SessionActivities, 'openTrace' | 'closeTrace'>> =>
  proxyActivities<SessionActivities>({ taskQueue: hostQueue(host), ...timeouts.session });

export const versionsOn = (host: string): Proxied<Pick<SessionActivities, 'readVersions'>> =>
  proxyActivities<SessionActivities>({ taskQueue: hostQueue(host), ...timeouts.versions });

export const sealingOn = (host: string): Proxied<Pick<SessionActivities, 'sealTrace'>> =>
  proxyActivities<SessionActivities>({ taskQueue: hostQueue(host), ...timeouts.seal });

export const agentOn = (host: string, timeoutMs: number): Proxied<Pick<HostActivities, 'awaitAgent'>> =>
  proxyActivities<HostActivities>({
    taskQueue: hostQueue(host),
    ...timeouts.awaitAgent,
    startToCloseTimeout: startMs + timeoutMs + agentGraceMs,
  });

export const cancelOn = (host: string): Proxied<Pick<HostActivities, 'deliverCancel'>> =>
  proxyActivities<HostActivities>({ taskQueue: hostQueue(host), ...timeouts.deliverCancel });

export const adoptionOf = (kind: SandboxKind): Proxied<AdoptionActivities> =>
  proxyActivities<AdoptionActivities>({ taskQueue: adoptionQueue(kind), ...timeouts.adopt });

export const cleanUpOn = (host: string): Proxied<CleanUpActivities> =>
  proxyActivities<CleanUpActivities>({ taskQueue: cleanUpQueue(host), ...timeouts.release });

/** The evaluation in the agent's own sandbox, which only its host has. It is in the lane of that host's other evaluations. */
export const evaluationOn = (host: string, timeoutMs: number): Proxied<Pick<HostActivities, 'evaluateInPlace'>> =>
  proxyActivities<HostActivities>({
    taskQueue: ownEvaluationQueue(host),
    ...timeouts.evaluateInPlace,
    startToCloseTimeout: imageMs + mostTestRuns * (timeoutMs + evaluationGraceMs),
  });

/**
 * The most often that one evaluation runs a task's tests: over the work; if they could not reach a host, over the reference solution
 * and once more over the work; if they show a fault, over the untouched workspace and twice over the reference solution.
 */
const mostTestRuns = 6;

export const evaluation = (timeoutMs: number, priority?: Priority): Proxied<EvaluationActivities> =>
  proxyActivities<EvaluationActivities>({
    taskQueue: evaluationQueue,
    ...timeouts.evaluate,
    startToCloseTimeout: imageMs + mostTestRuns * (timeoutMs + evaluationGraceMs),
    ...(priority !== undefined && { priority }),
  });
