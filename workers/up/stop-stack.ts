import { setTimeout as sleep } from 'node:timers/promises';
import { tryLock } from '../../infra/process/file-lock.ts';
import { isRunning, type ProcessIdentity, processIdentity } from '../../infra/process/process-identity.mjs';
import type { Config } from '../../infra/settings/config.ts';
import { claimHome } from './claim-home.ts';
import { isUp, readUpFile, type UpFile } from './up-file.ts';

const pollMs = 200;
/**
 * The time that a stack gets to stop: more than its three phases may take, 20 s for the workers and 10 s each for the gateway and
 * the Temporal server.
 */
const stopTimeoutMs = 60_000;

/** A process of a stack that was stopped. */
export interface StoppedProcess {
  /** The part's name, or `supervisor`. */
  readonly name: string;
  readonly pid: number;
  /** Whether it had to be killed. */
  readonly killed: boolean;
}

export interface StopStack {
  readonly config: Config;
  readonly progress: (line: string) => void;
  /** Called with the names of the processes that still run, whenever one has ended. */
  readonly onChange?: (running: readonly string[]) => void;
}

interface NamedProcess {
  readonly name: string;
  readonly identity: ProcessIdentity;
}

/**
 * Stops the stack of a home, whichever process started it, and kills what does not end in time. Returns the processes that it
 * stopped, also those that a killed supervisor has left; none if no stack runs. The home is free afterwards.
 */
export async function stopStack(
  { config, progress, onChange = () => undefined }: StopStack,
  signal: AbortSignal,
): Promise<readonly StoppedProcess[]> {
  const known = new Map<number, NamedProcess>();
  const find = async (): Promise<void> => {
    for (const one of await namedProcesses(config)) known.set(one.identity.pid, one);
  };
  const supervisor = await supervisorOf(config);
  // Before it is asked to stop, since a part may end at once.
  await find();
  if (supervisor !== null) signalProcess(supervisor.identity, 'SIGTERM');
  const deadline = performance.now() + stopTimeoutMs;
  const killed = new Set<number>();
  let running = -1;
  for (;;) {
    // The file names a part that starts while the stack is asked to stop, and no longer exists at the end.
    await find();
    if (supervisor !== null) known.set(supervisor.identity.pid, supervisor);
    const left = [...known.values()].filter(({ identity }) => isRunning(identity));
    if (left.length === 0) break;
    if (left.length !== running) onChange(left.map(({ name }) => name));
    running = left.length;
    if (performance.now() > deadline) {
      for (const { identity } of left) {
        signalProcess(identity, 'SIGKILL');
        killed.add(identity.pid);
      }
    }
    await sleep(pollMs, undefined, { signal });
  }
  if (known.size > 0) await (await claimHome(config, progress, signal)).release();
  return [...known.values()].map(({ name, identity: { pid } }) => ({ name, pid, killed: killed.has(pid) }));
}

/** Finds the process that runs a stack on the home: by its file, or by its lock while it has not written one. */
async function supervisorOf(config: Config): Promise<NamedProcess | null> {
  const up = await readUpFile(config.paths.up);
  if (up !== null && isUp(up)) return { name: 'supervisor', identity: up.supervisor };
  const lock = await tryLock(config.paths.lock);
  if ('holder' in lock) {
    const { pid } = lock.holder;
    return pid === null ? null : { name: 'supervisor', identity: processIdentity(pid) };
  }
  await lock.release();
  return null;
}

async function namedProcesses(config: Config): Promise<readonly NamedProcess[]> {
  const parts: UpFile['parts'] = (await readUpFile(config.paths.up))?.parts ?? [];
  return parts.flatMap(({ name, process: identity }) =>
    identity !== null && isRunning(identity) ? [{ name, identity }] : [],
  );
}

function signalProcess({ pid }: ProcessIdentity, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended in the meantime. What may not be signalled, because another user started it, must be said.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
