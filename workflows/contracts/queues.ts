/*
 * Task queues and priorities: which worker gets which work, and in which order.
 */

import { stackFormat } from './format.ts';
import type { SandboxKind } from './sandbox-kinds.ts';

/**
 * The task queue of all workflows and light activities. It names their format, so that no worker continues a workflow of another
 * one by chance.
 */
export const controlQueue = `temper-control-${stackFormat}`;
/** The task queues of the formats before, of which the first had no number. */
export const earlierControlQueues: readonly string[] = [
  'temper-control',
  ...Array.from({ length: stackFormat - 1 }, (_, index) => `temper-control-${index + 1}`),
];
/** The task queue on which images are pulled and built, before a rollout takes a slot on a host. */
export const imageQueue = 'temper-image';
/** The task queue on which host workers with free slots pick up rollouts that were started by hand. */
export const placementQueue = 'temper-placement';
/**
 * The task queue of the rollouts of one run or sweep. Each has its own, because a host decides whose rollout it takes by what
 * it holds of each, and must not take one to look at it.
 */
export const sharePlacementQueue = (share: string): string => `temper-placement-${share}`;
/** The task queue whose rate at the server limits how many sandboxes all hosts of a stack create per second. */
export const creationQueue = 'temper-creation';
/** The task queue on which hosts that share their journals adopt sandboxes of a kind from a lost host. */
export const adoptionQueue = (kind: SandboxKind): string => `temper-adoption-${kind}`;
export const trainerQueue = 'temper-trainer';

/**
 * A host's main task queue, for stages that cost little and for the reaper. Its polls are the host's sign of life, and those of the
 * host's other queues where it has none. It is stable per host, not per process, so that a restarted worker finds its sandboxes.
 */
export const hostQueue = (host: string): string => `temper-host-${host}`;
/** The task queues of a host's heavy stages. A stage waits there until its lane has a place, and nothing runs for it. */
export const provisionQueue = (host: string): string => `temper-host-${host}-provision`;
export const captureQueue = (host: string): string => `temper-host-${host}-capture`;
/** The task queue of evaluations in agents' own sandboxes, which are in the lane of evaluations. */
export const ownEvaluationQueue = (host: string): string => `temper-host-${host}-evaluation`;
/** The task queue of evaluations, which any host may run in a fresh sandbox. Its slots are separate from those of agents. */
export const evaluationQueue = 'temper-evaluation';
/** The task queue of clean-up, which has slots of its own, so that nothing can starve it. */
export const cleanUpQueue = (host: string): string => `temper-host-${host}-clean-up`;

/**
 * The Temporal priority of sweeps and regrades. It is below that of runs, which have the server's default 3: where both wait
 * for a slot or an evaluation, runs come first. Activities inherit it, so a host can tell whose work it gets.
 */
export const sweepPriority = 4;

/**
 * The time of a workflow task of a sweep. A replay takes seconds, since a sweep may have more than a thousand children, and one that
 * is late begins again: when the agents of large sweeps ended together, the usual ten seconds were not enough.
 */
export const sweepTaskTimeout = '1m';

/** The part of Temporal's priority that says whose a rollout is. Its activities inherit it. */
interface WorkPriority {
  readonly priorityKey?: number;
  readonly fairnessKey?: string;
}

/** Whether work has the priority of a sweep or regrade. */
export const isSweepPriority = (priority: WorkPriority | undefined): boolean =>
  (priority?.priorityKey ?? 0) >= sweepPriority;

/** Returns the run or sweep whose share of the slots a rollout needs, by the end of its key; undefined for one by hand. */
export const shareOf = (priority: WorkPriority | undefined): string | undefined =>
  /^[0-9a-f]{12}$/.exec(priority?.fairnessKey ?? '')?.[0];

/** Returns the queue on which a rollout waits for a slot. */
export function placementQueueOf(priority: WorkPriority | undefined): string {
  const share = shareOf(priority);
  return share === undefined ? placementQueue : sharePlacementQueue(share);
}
