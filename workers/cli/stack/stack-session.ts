import { setTimeout as sleep } from 'node:timers/promises';
import type { Paths } from '../../../infra/paths.ts';
import { isRunning, processIdentity } from '../../../infra/process/process-identity.mjs';
import { type Hold, tryHoldAlone, tryUse } from '../../../infra/process/use-lock.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { configuredTarget, connectClient } from '../../../infra/temporal/connection.ts';
import { pollers } from '../../../infra/temporal/pollers.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import { AlreadyUp } from '../../up/claim-home.ts';
import { neededParts } from '../../up/part-table.ts';
import { isFree, portsOf, withFreePorts } from '../../up/ports.ts';
import { type RunningStack, startStack } from '../../up/start-stack.ts';
import { isUp, readUpFile } from '../../up/up-file.ts';
import { note } from '../text/output.ts';
import { configOf, type HomeOption, runningConfigOf } from './command.ts';
import { openStackClient, type StackClient } from './stack-client.ts';

/** A running stack for one command. */
export interface StackSession extends StackClient {
  /** The stack that this command started and stops at the end; null if it uses one that was already running. */
  readonly own: RunningStack | null;
}

const pollMs = 200;
/** The number of starts of a stack whose ports other processes take. */
const startAttempts = 3;

/**
 * Opens the stack that runs on the home or that the environment names; otherwise starts one for the caller, if it may. Waits
 * for a stack that another process is starting or stopping on the home. A stack that another command has started for itself
 * runs until the session is closed.
 */
export async function openSession(options: HomeOption, mayStart: boolean, signal: AbortSignal): Promise<StackSession> {
  await untilSettled(options, signal);
  const shared = await shareRunning(options);
  if (shared === 'stopping') {
    await sleep(pollMs, undefined, { signal });
    return openSession(options, mayStart, signal);
  }
  if (shared !== null) return shared;
  const config = configOf(options);
  if (configuredTarget(config.env) !== undefined && (await isServed(config))) {
    return withoutStack(await openStackClient(config));
  }
  if (!mayStart) {
    throw new Error(
      `no stack runs on ${config.home}; start one with \`temper up\`, or omit --no-up to start one for this command`,
    );
  }
  try {
    return await startSession(config, signal);
  } catch (error) {
    if (!(error instanceof AlreadyUp)) throw error;
    await untilAnnounced(options, error.pid, signal);
    return openSession(options, mayStart, signal);
  }
}

/** Opens a session on the stack that runs on the home, if there is one and it is not about to stop. */
async function shareRunning(options: HomeOption): Promise<StackSession | 'stopping' | null> {
  const { paths } = configOf(options);
  if (!(await runs(paths))) return null;
  const use = await tryUse(paths.upUsers);
  if (use === null) return 'stopping';
  try {
    // It may have stopped before this process became its user.
    if (await runs(paths)) {
      const session = withoutStack(await openStackClient(await runningConfigOf(options)));
      return { ...session, close: () => session.close().finally(use.release) };
    }
  } catch (error) {
    await use.release();
    throw error;
  }
  await use.release();
  return 'stopping';
}

async function runs(paths: Paths): Promise<boolean> {
  const up = await readUpFile(paths.up);
  return up !== null && isUp(up) && up.state === 'running';
}

/** Waits until the process that has claimed the home writes its first `up.json`, or has ended. */
async function untilAnnounced(options: HomeOption, pid: number | null, signal: AbortSignal): Promise<void> {
  const { paths } = configOf(options);
  const holder = pid === null ? null : processIdentity(pid);
  do {
    await sleep(pollMs, undefined, { signal });
    const up = await readUpFile(paths.up);
    if (up !== null && isUp(up)) return;
  } while (holder !== null && isRunning(holder));
}

/** Waits while another process starts or stops a stack on the home. */
async function untilSettled(options: HomeOption, signal: AbortSignal): Promise<void> {
  const { paths, home } = configOf(options);
  for (let waits = 0; ; waits += 1) {
    const up = await readUpFile(paths.up);
    if (up === null || !isUp(up) || up.state === 'running') return;
    const doing = up.state === 'starting' ? 'starts' : 'stops';
    if (waits === 0) note(`waiting while process ${up.supervisor.pid} ${doing} a stack on ${home}`);
    await sleep(pollMs, undefined, { signal });
  }
}

/** Starts a stack on the configured ports, or on free ones if any of those is in use. It stops when the session is closed. */
export async function startSession(wanted: Config, signal: AbortSignal): Promise<StackSession> {
  note(`starting a stack on ${wanted.home}`);
  const own = await startOnFreePorts(wanted, signal);
  const { config } = own;
  try {
    const stack = await openStackClient(config);
    return {
      ...stack,
      own,
      async close() {
        await stack.close();
        const alone = await untilUnused(config.paths.upUsers, signal);
        await own.close().finally(alone.release);
      },
    };
  } catch (error) {
    await own.close();
    throw error;
  }
}

const withoutStack = (stack: StackClient): StackSession => ({ ...stack, own: null });

/** Waits until no other command uses the stack, or until Ctrl-C, and keeps further ones away. */
async function untilUnused(path: string, signal: AbortSignal): Promise<Hold> {
  for (let waits = 0; ; waits += 1) {
    const alone = await tryHoldAlone(path);
    if (alone !== null) return alone;
    if (signal.aborted) return { release: () => Promise.resolve() };
    if (waits === 0) note('done; the stack stops when the other commands that use it have ended, or on Ctrl-C');
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Whether a control worker runs on the server that the environment names. */
async function isServed(config: Config): Promise<boolean> {
  // A home on a directory follows the server that it finds, once its own control worker runs there.
  const { client, close } = await connectClient(temporalTarget(config));
  try {
    return (await pollers(client, controlQueue, 'workflow')).length > 0;
  } finally {
    await close();
  }
}

/** Starts a stack. Another process may take a port that was free before the stack listens there: then free ones are chosen again. */
async function startOnFreePorts(wanted: Config, signal: AbortSignal): Promise<RunningStack> {
  for (let attempt = 1; ; attempt += 1) {
    const config = (await arePortsFree(wanted)) ? wanted : await withFreePorts(wanted);
    try {
      return await startStack({ config, progress: note }, signal);
    } catch (error) {
      const isFinal = attempt === startAttempts || error instanceof AlreadyUp || signal.aborted;
      if (isFinal || (await arePortsFree(config))) throw error;
    }
  }
}

async function arePortsFree(config: Config): Promise<boolean> {
  const free = await Promise.all(portsOf(config, neededParts(config)).map(isFree));
  return free.every(Boolean);
}
