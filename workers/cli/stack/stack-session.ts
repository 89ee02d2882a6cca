import type { Config } from '../../../infra/config.ts';
import { configuredTarget } from '../../../infra/temporal/connection.ts';
import { isPortFree } from '../../../infra/temporal/ports.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import { neededParts } from '../../up/part-table.ts';
import { portsOf, withFreePorts } from '../../up/ports.ts';
import { pollers } from '../../up/ready.ts';
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

/**
 * Opens the stack that runs on the home or that the environment names; otherwise starts one for the caller, if it may.
 */
export async function openSession(options: HomeOption, mayStart: boolean, signal: AbortSignal): Promise<StackSession> {
  const running = await runningConfigOf(options);
  const up = await readUpFile(running.paths.up);
  if (up !== null && isUp(up)) return asSession(await openStackClient(running), null);
  if (configuredTarget(running.env) !== undefined && (await isServed(running))) {
    return asSession(await openStackClient(running), null);
  }
  if (!mayStart) {
    throw new Error(
      `no stack runs on ${running.home}; start one with \`temper up\`, or omit --no-up to start one for this command`,
    );
  }
  return startSession(await onFreePorts(configOf(options)), signal);
}

/** Starts a stack, which stops when the session is closed. */
export async function startSession(config: Config, signal: AbortSignal): Promise<StackSession> {
  note(`starting a stack on ${config.home}`);
  const own = await startStack({ config, progress: note }, signal);
  try {
    return asSession(await openStackClient(config), own);
  } catch (error) {
    await own.close();
    throw error;
  }
}

function asSession(stack: StackClient, own: RunningStack | null): StackSession {
  return {
    ...stack,
    own,
    async close() {
      await stack.close();
      await own?.close();
    },
  };
}

/** Whether a control worker runs on the server that the environment names. */
async function isServed(config: Config): Promise<boolean> {
  const { client, close } = await openStackClient(config);
  try {
    return (await pollers(client, controlQueue, 'workflow')).length > 0;
  } finally {
    await close();
  }
}

/** Chooses the ports of a stack for one command: the configured ones, or free ones if any of those is in use. */
export async function onFreePorts(config: Config): Promise<Config> {
  const free = await Promise.all(portsOf(config, neededParts(config)).map(({ port }) => isPortFree(port)));
  return free.every(Boolean) ? config : withFreePorts(config);
}
