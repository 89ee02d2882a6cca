import { readFile } from 'node:fs/promises';
import pLimit from 'p-limit';

/** Time that one run of the measured work takes; `cpuMs` is the time of all cores of the machine. */
export interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/**
 * Runs `work` a number of times. After a failure no more runs begin; the error is thrown once the others have ended.
 */
export async function each(times: number, concurrency: number, work: () => Promise<void>): Promise<void> {
  const limit = pLimit(concurrency);
  const failed = new AbortController();
  const run = async (): Promise<void> => {
    if (!failed.signal.aborted) await work().catch((error: unknown) => failed.abort(error));
  };
  await Promise.all(Array.from({ length: times }, () => limit(run)));
  failed.signal.throwIfAborted();
}

/** Measures `work`, which does `runs` runs, and returns the cost of one run. */
export async function perRun(runs: number, work: () => Promise<void>): Promise<Cost> {
  const cpuBefore = await machineCpuMs();
  const startedAt = performance.now();
  await work();
  const wallMs = (performance.now() - startedAt) / runs;
  return { wallMs, cpuMs: ((await machineCpuMs()) - cpuBefore) / runs };
}

/** Returns the mean of the costs of rounds that are equally long. */
export const mean = (costs: readonly Cost[]): Cost => ({
  wallMs: costs.reduce((sum, { wallMs }) => sum + wallMs, 0) / costs.length,
  cpuMs: costs.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / costs.length,
});

/** Reads the busy time of all cores since boot, which /proc/stat counts in hundredths of a second. */
async function machineCpuMs(): Promise<number> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.trim().split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) * 10;
}
