/** The times of a turn or call: its start by the wall clock, and an end that a jump of that clock does not move away from it. */
export interface Timing {
  readonly startedAt: number;
  /** Returns the start plus the time that has passed since, in milliseconds. */
  endedAt(): number;
}

/** Begins a timing. */
export function beginTiming(): Timing {
  const startedAt = Date.now();
  const beganMs = performance.now();
  return { startedAt, endedAt: () => startedAt + Math.round(performance.now() - beganMs) };
}
