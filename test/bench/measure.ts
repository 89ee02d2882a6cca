import { readFile } from 'node:fs/promises';

/** Of one run of what is measured. CPU is that of the whole machine. */
export interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** Runs `work` so often, so many at once. After a failure no more are begun, and none is under way when it is thrown. */
export async function each(times: number, concurrency: number, work: () => Promise<void>): Promise<void> {
  let left = times;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await work().catch((error: unknown) => {
        left = 0;
        throw error;
      });
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: concurrency }, lane));
  for (const one of lanes) if (one.status === 'rejected') throw one.reason;
}

export async function perRun(runs: number, work: () => Promise<void>): Promise<Cost> {
  const cpuBefore = await machineCpuMs();
  const startedAt = performance.now();
  await work();
  const wallMs = (performance.now() - startedAt) / runs;
  return { wallMs, cpuMs: ((await machineCpuMs()) - cpuBefore) / runs };
}

/** Busy time of all cores since boot; /proc/stat counts in hundredths of a second. */
async function machineCpuMs(): Promise<number> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.trim().split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) * 10;
}
