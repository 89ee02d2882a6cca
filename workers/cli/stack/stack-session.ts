import type { Config } from '../../../infra/config.ts';
import { configuredTarget } from '../../../infra/temporal/connection.ts';
import { isPortFree } from '../../../infra/temporal/ports.ts';
import { controlQueue } from '../../../workflows/contracts/ids.ts';
import { neededParts } from '../../up/part-table.ts';
import { portsOf, withFreePorts } from '../../up/ports.ts';
import { pollers } from '../../up/ready.ts';
import { type RunningStack, startStack } from '../../up/start-stack.ts';
import { isUp, readUpFile } from '../../up/up-file.ts';
import { note } from '../text/output.ts';
import { configOf, type HomeOption, runningConfigOf } from './command.ts';
import { openStackClient, type StackClient } from './stack-client.ts';

/** A stack that works, and what has to be taken down again afterwards. */
export interface StackSession extends StackClient {
  /** Null when it was running before, and goes on. */
  readonly own: RunningStack | null;
}

/** The stack that runs on the home or that the environment names; else one of our own, for as long as the caller runs. */
export async function openSession(options: HomeOption, mayStart: boolean, signal: AbortSignal): Promise<StackSession> {
  const running = await runningConfigOf(options);
  const up = await readUpFile(running.paths.up);
  if (up !== null && isUp(up)) return asSession(await openStackClient(running), null);
  if (configuredTarget(running.env) !== undefined && (await isServed(running))) {
    return asSession(await openStackClient(running), null);
  }
  if (!mayStart) {
    throw new Error(
      `expected a running stack on ${running.home}, found none; start one with \`temper up\`, or leave out --no-up`,
    );
  }
  return startSession(await onFreePorts(configOf(options)), signal);
}

/** Brings a stack up; closing the session takes it down. */
export async function startSession(config: Config, signal: AbortSignal): Promise<StackSession> {
  note(`bringing up a stack on ${config.home}`);
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

/** Does anybody run workflows on the server that the environment names? */
async function isServed(config: Config): Promise<boolean> {
  const { client, close } = await openStackClient(config);
  try {
    return (await pollers(client, controlQueue, 'workflow')).length > 0;
  } finally {
    await close();
  }
}

/** A stack for one command takes the usual ports if it can, and any others if it can't. */
export async function onFreePorts(config: Config): Promise<Config> {
  const free = await Promise.all(portsOf(config, neededParts(config)).map(({ port }) => isPortFree(port)));
  return free.every(Boolean) ? config : withFreePorts(config);
}
