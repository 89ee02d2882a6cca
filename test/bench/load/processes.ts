import { readFileSync } from 'node:fs';
import { cpuMsOf, type MeasuredProcess, pidsOf } from '../rollout/processes.ts';

/** The CPU time of a process of the stack since its start, and its memory by proportional shares. */
export interface ProcessUse {
  readonly name: string;
  readonly cpuMs: number;
  /** Zero for commands, which have ended. */
  readonly memoryMb: number;
}

/** Samples the processes of a stack; the peak of a process is the largest of its samples. */
export interface ProcessSampler {
  /** Reads all processes now. */
  read(): readonly ProcessUse[];
  /** Returns the most memory that each process had, in MB, since the sampler was started. */
  peaks(): ReadonlyMap<string, number>;
  close(): void;
}

const everyMs = 2_000;

/** Samples the processes that a function lists. */
export function startSampling(list: () => readonly MeasuredProcess[]): ProcessSampler {
  const peaks = new Map<string, number>();
  const read = (): readonly ProcessUse[] => {
    const uses = list().map(useOf);
    for (const { name, memoryMb } of uses) peaks.set(name, Math.max(peaks.get(name) ?? 0, memoryMb));
    return uses;
  };
  const timer = setInterval(() => {
    try {
      read();
    } catch {
      // A process has ended and is restarted, which the figures show.
    }
  }, everyMs);
  return { read, peaks: () => peaks, close: () => clearInterval(timer) };
}

function useOf(measured: MeasuredProcess): ProcessUse {
  const memoryMb = pidsOf(measured).reduce((sum, pid) => sum + memoryMbOf(pid), 0);
  return { name: measured.name, cpuMs: cpuMsOf(measured), memoryMb };
}

const memoryMbOf = (pid: number): number => {
  const [, kilobytes = 0] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')) ?? [];
  return Number(kilobytes) / 1024;
};
