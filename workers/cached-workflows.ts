/** Memory of a workflow in the control worker's cache, measured with rollouts in flight. */
const bytesEach = 0.6e6;

/**
 * Returns the number of workflows that the control worker keeps in memory: as many as fit into an eighth of it, from 1,000 to
 * 4,000. A workflow that is not among them is replayed from its history at its next step. When a thousand rollouts end together,
 * each of their steps follows a step of all others and of the thousand that take their places: with room for fewer than those,
 * every step would be a replay. The heap of V8 ends at 4 GB.
 */
export const cachedWorkflows = (memoryBytes: number): number =>
  Math.min(4_000, Math.max(1_000, Math.floor(memoryBytes / 8 / bytesEach)));
