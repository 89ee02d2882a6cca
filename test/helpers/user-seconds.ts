/** Returns the CPU time in seconds that synchronous work takes, which other processes hardly change. */
export function userSeconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  return process.cpuUsage(before).user / 1e6;
}
