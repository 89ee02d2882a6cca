import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { readIfExists } from './processes.ts';
import { requireProgram } from './programs.ts';

const run = promisify(execFile);
const pageBytes = 4_096;
const walkTimeoutMs = 20_000;

/** Resident memory in MB of a process and its descendants. With a pid namespace's init, that is all of its processes. */
export function residentMb(root: number): number {
  let pages = 0;
  for (const pid of withDescendants(root)) pages += Number(readIfExists(`/proc/${pid}/statm`)?.split(' ')[1] ?? 0);
  return (pages * pageBytes) / 2 ** 20;
}

/** Disk use of a tree in MB. Undefined if it could not be measured in time, because it is very large or the host is overloaded. */
export async function diskUsageMb(directory: string, signal: AbortSignal): Promise<number | undefined> {
  const options = { signal, timeout: walkTimeoutMs, maxBuffer: 2 ** 16, env: {} };
  // Files that vanish while du walks make it exit with 1; its sum stands.
  const { stdout } = await run(requireProgram('du'), ['-skx', directory], options).catch(
    (error: { stdout?: string; killed?: boolean }) => {
      signal.throwIfAborted();
      if (!error.killed && !error.stdout) throw error;
      return { stdout: error.stdout };
    },
  );
  return stdout ? Number.parseInt(stdout, 10) / 1_024 : undefined;
}

function* withDescendants(root: number): Generator<number> {
  const stack = [root];
  for (let pid = stack.pop(); pid !== undefined; pid = stack.pop()) {
    yield pid;
    for (const task of tasksOf(pid)) {
      const children = readIfExists(`/proc/${pid}/task/${task}/children`);
      for (const child of children?.split(' ') ?? []) if (child !== '') stack.push(Number(child));
    }
  }
}

function tasksOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}
