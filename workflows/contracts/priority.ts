/**
 * The Temporal priority of sweeps and regrades. It is below that of runs, which have the server's default 3: where both wait
 * for a slot or an evaluation, runs come first. Activities inherit it, so a host can tell whose work it gets.
 */
export const sweepPriority = 4;

/** Whether work has the priority of a sweep or regrade. */
export const isOfSweep = (priority: { readonly priorityKey?: number } | undefined): boolean =>
  (priority?.priorityKey ?? 0) >= sweepPriority;
