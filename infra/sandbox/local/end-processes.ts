import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { killPid } from '../kill.ts';
import type { Account } from '../sandbox.ts';
import { controlOf, executionsOf, type SandboxDirectory } from './layout.ts';
import { claimedProcesses, commandPid, isRunning, namesIn, pidIn, supervisorPid } from './processes.ts';

/** The first pause between two looks at a process that was killed. It usually ends within milliseconds; pauses double. */
const firstPauseMs = 2;
const longestPauseMs = 50;
const timeoutMs = 10_000;

/** Ends one detached process through the init of its pid namespace, and waits until its supervisor has written the result. */
export async function endProcess(directory: string): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  for (let pauseMs = firstPauseMs; isRunning(directory) && performance.now() < deadlineMs; pauseMs *= 2) {
    const pid = commandPid(directory);
    if (pid !== undefined) killPid(pid);
    await delay(Math.min(pauseMs, longestPauseMs));
  }
  const stuck = isRunning(directory) ? supervisorPid(directory) : undefined;
  // Kills the supervisor's whole group, since any part of it may be what blocks its end.
  if (stuck !== undefined) killPid(-stuck);
}

/** Ends everything that runs under these accounts, detached and in the foreground. */
export async function endAccounts(sandbox: SandboxDirectory, accounts: readonly Account[]): Promise<void> {
  const executions = executionsOf(sandbox);
  for (const file of namesIn(executions)) {
    const pid = accounts.some((account) => file.startsWith(account)) ? pidIn(join(executions, file)) : undefined;
    if (pid !== undefined) killPid(pid);
  }
  const claimed = claimedProcesses(controlOf(sandbox)).filter(({ account }) => accounts.includes(account));
  await Promise.all(claimed.map(({ directory }) => endProcess(directory)));
}
