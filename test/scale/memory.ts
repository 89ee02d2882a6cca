import { readFileSync } from 'node:fs';

/** Reads the resident memory of a process in MB; 0 if it has ended. */
export function residentMb(pid: number): number {
  try {
    const [, kb = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kb) / 1024);
  } catch {
    return 0;
  }
}

/** Watches the memory of processes, twice a second; `end` returns the maximum of each in MB. */
export function watchMemory(pids: readonly number[]): { end(): readonly number[] } {
  let most = pids.map(residentMb);
  const look = (): void => {
    most = pids.map((pid, index) => Math.max(most[index] ?? 0, residentMb(pid)));
  };
  const timer = setInterval(look, 500);
  return {
    end() {
      clearInterval(timer);
      look();
      return most;
    },
  };
}
