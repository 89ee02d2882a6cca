/*
 * Task queues and priorities: which worker gets which work, and in which order.
 */

/** The task queue of all workflows and light activities. */
export const controlQueue = 'temper-control';
/** Images are pulled and built in slots of their own, before a rollout takes a slot on a host. */
export const imageQueue = 'temper-image';
/** The task queue on which host workers with free slots pick up rollouts. */
export const placementQueue = 'temper-placement';
export const trainerQueue = 'temper-trainer';

/** A host's own task queue. It is stable per host, not per process, so that a restarted worker finds its sandboxes. */
export const hostQueue = (host: string): string => `temper-host-${host}`;
/** Any host may evaluate, because the sandbox is a fresh one. The slots are separate, so that agents can't starve them. */
export const evaluationQueue = 'temper-evaluation';
/** Clean-up has slots of its own, so that nothing can starve it. */
export const cleanUpQueue = (host: string): string => `temper-host-${host}-clean-up`;

/**
 * The Temporal priority of sweeps and regrades. It is below that of runs, which have the server's default 3: where both wait
 * for a slot or an evaluation, runs come first. Activities inherit it, so a host can tell whose work it gets.
 */
export const sweepPriority = 4;

/** Whether work has the priority of a sweep or regrade. */
export const isSweepPriority = (priority: { readonly priorityKey?: number } | undefined): boolean =>
  (priority?.priorityKey ?? 0) >= sweepPriority;
