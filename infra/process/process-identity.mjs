import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Identifies a process by its pid and start time, since pids are reused. */
export function processIdentity(pid) {
  return { pid, startedAt: startTime(pid) };
}

/**
 * Whether exactly this process still runs. A zombie does not, but a process whose first thread has ended does while others end: they
 * hold its files and locks.
 */
export function isRunning({ pid, startedAt }) {
  return startedAt !== undefined && startTime(pid) === startedAt;
}

function startTime(pid) {
  return process.platform === 'linux' ? startTimeFromProc(pid) : startTimeFromPs(pid);
}

function startTimeFromProc(pid) {
  let stat;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined; // no such process
  }
  // The command name is in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, threads, startedAt] = [fields[0], Number(fields[17]), fields[19]];
  return state === 'Z' && threads <= 1 ? undefined : startedAt;
}

function startTimeFromPs(pid) {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined; // no such process
  }
}
