/** Returns the CPU time in seconds that synchronous work takes, which other processes hardly change. */
export function userSeconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  return process.cpuUsage(before).user / 1e6;
}

/** Returns the CPU time in seconds that this process takes until some work has ended. */
export async function userSecondsUntil(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  return process.cpuUsage(before).user / 1e6;
}
