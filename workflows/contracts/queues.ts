/*
 * Task queues and priorities: which worker gets which work, and in which order.
 */

/** The task queue of all workflows and light activities. */
export const controlQueue = 'temper-control';
/** The task queue on which images are pulled and built, before a rollout takes a slot on a host. */
export const imageQueue = 'temper-image';
/** The task queue on which host workers with free slots pick up rollouts of runs, and those started by hand. */
export const placementQueue = 'temper-placement';
/** The task queue on which host workers pick up rollouts of sweeps, while sweeps may have more slots and no run waits. */
export const sweepPlacementQueue = 'temper-placement-sweep';
export const trainerQueue = 'temper-trainer';

/**
 * A host's main task queue, for stages that cost little and for the reaper. Its polls are the host's sign of life. It is
 * stable per host, not per process, so that a restarted worker finds its sandboxes.
 */
export const hostQueue = (host: string): string => `temper-host-${host}`;
/** The task queues of a host's heavy stages. A stage waits there until its lane has a place, and nothing runs for it. */
export const provisionQueue = (host: string): string => `temper-host-${host}-provision`;
export const captureQueue = (host: string): string => `temper-host-${host}-capture`;
/** The task queue of evaluations, which any host may run in a fresh sandbox. Its slots are separate from those of agents. */
export const evaluationQueue = 'temper-evaluation';
/** The task queue of clean-up, which has slots of its own, so that nothing can starve it. */
export const cleanUpQueue = (host: string): string => `temper-host-${host}-clean-up`;

/**
 * The Temporal priority of sweeps and regrades. It is below that of runs, which have the server's default 3: where both wait
 * for a slot or an evaluation, runs come first. Activities inherit it, so a host can tell whose work it gets.
 */
export const sweepPriority = 4;

/** Whether work has the priority of a sweep or regrade. */
export const isSweepPriority = (priority: { readonly priorityKey?: number } | undefined): boolean =>
  (priority?.priorityKey ?? 0) >= sweepPriority;
