import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGatewayControl, type GatewayControlClient } from '../../../infra/gateway/client.ts';
import { controlSockets, directoryNameOf, socketOf } from '../../../infra/gateway/sockets.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { gatewayHeap } from '../../../workers/up/part-table.ts';
import { claimForGateway } from './claim.ts';

/** Whether the measured process can have a core of its own; client and engine share the others. */
export const canPin = availableParallelism() > 1;
const measuredCore = '0';

export function pinClient(): void {
  if (canPin) execFileSync('taskset', ['-cp', `1-${availableParallelism() - 1}`, String(process.pid)]);
}

export interface ZeroEngine {
  readonly url: string;
  close(): Promise<void>;
}

export async function startZeroEngine(replyIds: readonly number[]): Promise<ZeroEngine> {
  const program = join(import.meta.dirname, 'zero-engine.ts');
  const child = spawn(process.execPath, [program, JSON.stringify(replyIds)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout === null) throw new Error('the engine process has no stdout');
  const [url] = await once(createInterface(child.stdout), 'line');
  return { url: String(url), close: () => end(child) };
}

export interface MeasuredProcess {
  /** User and system time since the start of the process. */
  cpuMs(): Promise<number>;
  close(): Promise<void>;
}

export interface GatewayProcess extends MeasuredProcess {
  readonly control: GatewayControlClient;
  /** Returns the socket of a session, as its sandbox has it. */
  socketOf(session: string): string;
  residentMb(): Promise<number>;
}

export interface FloorProcess extends MeasuredProcess {
  readonly socketPath: string;
}

/** Starts the gateway. With a directory, it writes a CPU profile there when it ends. */
export async function startGatewayProcess(config: Config, profileDir?: string): Promise<GatewayProcess> {
  await claimForGateway(config);
  const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  const options = [...gatewayHeap(config.gateways), ...profile];
  const child = spawnMeasured([...options, join(import.meta.dirname, '../../../workers/cli.ts'), 'gateway'], {
    env: config.env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const control = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  while (!(await control.health().catch(() => false))) {
    if (child.exitCode !== null) throw new Error(`the gateway process ended with exit code ${child.exitCode}`);
    await sleep(50);
  }
  return {
    control,
    socketOf: (session) => socketOf(join(config.paths.gatewaySockets.sessions, directoryNameOf(session)), 'gateway'),
    cpuMs: () => cpuMsOf(child),
    async residentMb() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
    },
    async close() {
      await control.end();
      await end(child);
    },
  };
}

/** Starts a proxy that does only what every gateway must do. */
export async function startFloorProxy(engineUrl: string, dir: string): Promise<FloorProcess> {
  const socketPath = join(dir, 'floor.sock');
  const child = spawnMeasured([join(import.meta.dirname, 'floor-proxy.ts'), socketPath, engineUrl, dir], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout === null) throw new Error('the floor proxy has no stdout');
  await once(createInterface(child.stdout), 'line');
  return { socketPath, cpuMs: () => cpuMsOf(child), close: () => end(child) };
}

function spawnMeasured(args: readonly string[], options: SpawnOptions): ChildProcess {
  const command = [process.execPath, ...args];
  const [program = '', ...rest] = canPin ? ['taskset', '-c', measuredCore, ...command] : command;
  return spawn(program, rest, options);
}

async function cpuMsOf({ pid }: ChildProcess): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function end(child: ChildProcess): Promise<void> {
  // Ctrl-C in a terminal reaches every process.
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}
