import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { readUpFile } from '../../../workers/up/up-file.ts';
import { kubeconfigAt } from '../kubernetes/kubeconfig-at.ts';
import { until } from '../until.ts';
import { createMachine, type Machine } from './machine.ts';

const program = join(import.meta.dirname, '../../../workers/cli.ts');
const startMs = 240_000;

/** A host of a fleet: gateway and host worker, on a machine of their own. */
export interface FleetHost {
  readonly name: string;
  readonly home: string;
  /** Returns the process of its host worker; null while none runs. */
  workerPid(): Promise<number | null>;
  /** Ends all of its processes at once, and removes its disk. */
  destroy(): Promise<void>;
  /** Runs a script of bash on the machine, and returns what it prints. `$gateway` is the address of this computer. */
  run(script: string): Promise<string>;
  /** Ends it in order; its disk stays. */
  stop(): Promise<void>;
}

export interface FleetHostOptions {
  readonly name: string;
  readonly home: string;
  /** The homes of the other machines, which it does not see. */
  readonly hidden: readonly string[];
  /** The settings with the addresses of the services on this computer's loopback address. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The settings that hold such an address. All that the machine reaches is at these, and the API server of a cluster. */
  readonly services: readonly string[];
  /** The path of a kubeconfig, for a cluster that the machine reaches, too. */
  readonly kubeconfig?: string;
}

/** Starts a host by `temper up --parts gateway,host`, and waits until it polls for work. */
export async function startFleetHost(options: FleetHostOptions): Promise<FleetHost> {
  const { name, home, hidden } = options;
  const machine = createMachine({ hidden });
  const logFile = join(home, '..', `${name}.log`);
  const log = openSync(logFile, 'a');
  let up: ChildProcess | null = null;
  let removed = false;
  const remove = (): void => {
    if (!removed) machine.remove();
    removed = true;
  };
  const stop = async (): Promise<void> => {
    if (up !== null && up.exitCode === null && up.signalCode === null) {
      const exited = once(up, 'exit');
      up.kill('SIGTERM');
      await exited;
    }
    await killAllOn(machine);
    remove();
  };
  try {
    const own = await environmentOn(machine, options);
    const command = [process.execPath, program, 'up', '--parts', 'gateway,host'] as const;
    up = machine.spawn([...command], { env: own, stdio: ['ignore', log, log] });
    await untilUp(up, join(home, 'up.json'));
  } catch (error) {
    await stop();
    const output = await readFile(logFile, 'utf8');
    throw new Error(`host ${name} did not start: ${output}`, { cause: error });
  } finally {
    closeSync(log);
  }
  return {
    name,
    home,
    async workerPid() {
      const { parts = [] } = (await readUpFile(join(home, 'up.json'))) ?? {};
      return parts.find((part) => part.name === 'host' && part.state === 'running')?.process?.pid ?? null;
    },
    async destroy() {
      await killAllOn(machine);
      remove();
      await rm(home, { recursive: true, force: true });
    },
    async run(script) {
      const bash = machine.spawn(['bash', '-c', script], {
        env: { PATH: process.env.PATH, gateway: machine.gateway },
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      return bash.stdout === null ? '' : await text(bash.stdout);
    },
    stop,
  };
}

/** Returns the settings of a host, with the addresses at which its machine finds the services. */
async function environmentOn(machine: Machine, { name, home, env, services, kubeconfig }: FleetHostOptions) {
  const addresses = await Promise.all(
    services.map(async (setting) => {
      const address = env[setting] ?? '';
      const port = Number(/:(\d+)$/.exec(address)?.[1]);
      return [setting, address.replace(/127\.0\.0\.1:\d+$/, `${machine.gateway}:${await machine.forward(port)}`)];
    }),
  );
  const own = { ...env, ...Object.fromEntries(addresses), TEMPER_HOME: home, TEMPER_HOST: name };
  if (kubeconfig === undefined) return own;
  const KUBECONFIG = join(home, 'kubeconfig');
  const forward = async ({ hostname, port }: URL) =>
    `${machine.gateway}:${await machine.forward(Number(port || 443), hostname)}`;
  await writeFile(KUBECONFIG, await kubeconfigAt(kubeconfig, forward), { mode: 0o600 });
  return { ...own, KUBECONFIG };
}

/** Kills all processes on a machine, also those that they start meanwhile. */
async function killAllOn({ name }: Machine): Promise<void> {
  const listed = (): string => execFileSync('ip', ['netns', 'pids', name], { encoding: 'utf8' });
  await until(() => {
    const pids = listed().split('\n').filter(Boolean).map(Number);
    for (const pid of pids) killIfRunning(pid);
    return pids.length === 0;
  });
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

async function untilUp(up: ChildProcess, upFile: string): Promise<void> {
  await until(async () => {
    if (up.exitCode !== null) throw new Error(`temper up ended with exit code ${up.exitCode}`);
    return (await readUpFile(upFile))?.state === 'running';
  }, startMs);
}
