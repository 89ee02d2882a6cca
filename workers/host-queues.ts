import type { WorkerOptions } from '@temporalio/worker';
import { createAgentActivities } from '../activities/host/agent.ts';
import { createEvaluation, createEvaluationInPlace } from '../activities/host/evaluate.ts';
import type { Host } from '../activities/host/host.ts';
import { createImageActivities } from '../activities/host/images.ts';
import type { Lanes } from '../activities/host/lanes.ts';
import type { Reaper } from '../activities/host/reap.ts';
import { createCleanUp, createProvisioning } from '../activities/host/sandbox.ts';
import type { SessionActivities } from '../activities/interfaces/host.ts';
import type { Lease } from '../infra/hosts/lease.ts';
import {
  captureQueue,
  cleanUpQueue,
  evaluationQueue,
  hostQueue,
  imageQueue,
  ownEvaluationQueue,
  provisionQueue,
} from '../workflows/contracts/queues.ts';
import { inLane } from './lane-worker.ts';
import { whileLeased } from './leased-worker.ts';
import { byHandPlacementWorker, type PlacementWorkerDependencies } from './placement-workers.ts';
import { whileOpen } from './slot-tuner.ts';

/**
 * Slots of the main queue beside those of the host's own agents: for the agents that it adopts, of which there may be any number,
 * and for the short stages, most of which wait for one of the few connections to a gateway. A worker without a free slot does
 * not poll, and its host would count as lost.
 */
const furtherSlots = 10_000;
const pollers = { type: 'simple-maximum', maximum: 2 } as const;

export interface HostQueues {
  readonly capacity: number;
  /** The activities at the host's own gateways, which have the sessions of its sandboxes. */
  readonly sessions: SessionActivities;
  readonly lanes: Lanes;
  readonly placing: PlacementWorkerDependencies;
  readonly reaper: Reaper;
  readonly lease: Lease;
}

/**
 * Returns the workers of a host: one for light stages, and one for each task queue of the heavy ones, with a lane for each kind,
 * so that no backlog starves evaluations or clean-up.
 */
export function hostQueues(
  host: Host,
  { capacity, sessions, lanes, placing, reaper, lease }: HostQueues,
): WorkerOptions[] {
  const common = { activityTaskPollerBehavior: pollers, maxEagerActivityReservationsPerWorkflowTask: 0 };
  const { awaitAgent, deliverCancel, ...capturing } = createAgentActivities(host, lanes);
  const stages: WorkerOptions[] = [
    {
      ...common,
      ...inLane(lanes.image, { slots: whileOpen(host.intake, lanes.image) }),
      taskQueue: imageQueue,
      activities: createImageActivities(host),
    },
    {
      ...common,
      taskQueue: hostQueue(host.name),
      activities: { awaitAgent, deliverCancel, ...sessions, ...reaper.activities },
      maxConcurrentActivityTaskExecutions: capacity + furtherSlots,
    },
    {
      ...common,
      ...inLane(lanes.provision),
      taskQueue: provisionQueue(host.name),
      activities: createProvisioning(host),
    },
    {
      ...common,
      ...inLane(lanes.capture),
      taskQueue: captureQueue(host.name),
      activities: capturing,
    },
    {
      ...common,
      ...inLane(lanes.evaluate, { slots: whileOpen(host.intake, lanes.evaluate) }),
      taskQueue: evaluationQueue,
      activities: createEvaluation(host),
    },
    {
      // Only this host has the sandboxes of these, so it takes them whatever else it refuses.
      ...common,
      ...inLane(lanes.evaluate, { queue: lanes.evaluate.addQueue() }),
      taskQueue: ownEvaluationQueue(host.name),
      activities: createEvaluationInPlace(host),
    },
    {
      ...common,
      ...inLane(lanes.release),
      taskQueue: cleanUpQueue(host.name),
      activities: createCleanUp(host),
    },
  ];
  // Placement waits for no lease: where the host has none, the rollout is for another host.
  return [byHandPlacementWorker(placing), ...stages.map((one) => whileLeased(lease, one))];
}
