import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  channelSocketIn,
  channelVariable,
  defaultHoldMs,
  egressVariable,
  holdVariable,
  noGateway,
  relayRetryMs,
} from './protocol.ts';
import type { Route } from './route.ts';

/**
 * Runs inside the sandbox: serves the gateways' unix sockets on a loopback address, runs the agent, and exits with its exit
 * code. One process does both, because a second Node process would cost more than all of the relay's work. Nothing here may
 * depend on an npm package: the sandbox has none.
 *
 *     relay <host>:<port> <directory> exec <program> <arguments...>
 *     relay <host>:<port> <directory> module <file>          a module whose main() resolves to an exit code
 *     relay - - exec <program> <arguments...>                serves no gateway, only connections to the outside
 *     relay - - serve <seconds>                              does that for a time, and runs nothing
 */

const exits = { usage: 120, listen: 121, spawn: 127 } as const;

async function relay(args: readonly string[]): Promise<number> {
  const [address = '', directory, mode, target, ...rest] = args;
  const [host, port] = address.split(':');
  if (directory === undefined || target === undefined || !isMode(mode)) {
    return fail(exits.usage, `expected <host>:<port> <directory> exec|module|serve <target>, got ${args.join(' ')}`);
  }
  try {
    const route = await openRoute(directory);
    const egress = process.env[egressVariable];
    if (egress !== undefined) {
      const { serveEgress } = await import('./egress.ts');
      await serveEgress(egress, route);
    }
    // A module of temper's own ends by itself.
    const onEnd = mode === 'exec' ? endChild : undefined;
    if (address !== noGateway) await serveGateway(route, { host, port: Number(port), onEnd });
  } catch (error) {
    return fail(exits.listen, `cannot listen on ${address}: ${error instanceof Error ? error.message : error}`);
  }
  // One line per start in an append-only log: a second start would show. The log of tests is theirs.
  if (address !== noGateway || mode === 'serve') process.stdout.write(`relay: starts ${target}\n`);
  return modes[mode](target, rest);
}

const modes = {
  exec: execute,
  module: runModule,
  serve: (seconds: string) => sleep(Number(seconds) * 1000, 0),
} as const;
const isMode = (mode: string | undefined): mode is keyof typeof modes => mode !== undefined && mode in modes;

interface Listening {
  readonly host: string | undefined;
  readonly port: number;
  readonly onEnd: (() => void) | undefined;
}

async function serveGateway(route: Route, { host, port, onEnd }: Listening): Promise<void> {
  const { createProxy } = await import('./proxy.ts');
  const server = createProxy(route, onEnd);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

/** Opens the route of the sandbox's kind of channel. A module is loaded only where it is used. */
async function openRoute(directory: string): Promise<Route> {
  const kind = process.env[channelVariable];
  const retryMs = Number(process.env[holdVariable] ?? defaultHoldMs);
  // The agent's own programs have no use for them.
  delete process.env[channelVariable];
  delete process.env[holdVariable];
  if (kind === 'stream') {
    const { createStreamRoute } = await import('./stream-route.ts');
    return createStreamRoute({ socketPath: channelSocketIn(process.env.HOME ?? '/'), retryMs });
  }
  const { createSocketRoute } = await import('./socket-route.ts');
  return createSocketRoute({ directory, retryMs: relayRetryMs });
}

/** The time that an agent has to end by itself, once it is asked to. */
const endMs = 5_000;
let child: ChildProcess | undefined;

/** Ends the agent, whose work is handed in: all tool calls beside the submission are over when it calls the model again. */
function endChild(): void {
  process.stdout.write('relay: the work is handed in\n');
  child?.kill('SIGTERM');
  setTimeout(() => child?.kill('SIGKILL'), endMs).unref();
}

function execute(program: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    openLog();
    const started = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    child = started;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => started.kill(signal));
    started.once('error', (error) => resolve(fail(exits.spawn, `cannot start ${program}: ${error.message}`)));
    started.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/**
 * Opens the log that the relay shares with the agent. Node would open it later, for example when the first connection closes, and
 * switch its pipe to non-blocking writes for both: an agent that prints faster than its log is read would fail with EAGAIN. The
 * start of a child undoes that for pipes that are open.
 */
function openLog(): void {
  for (const stream of [process.stdout, process.stderr]) stream.write('');
}

async function runModule(file: string): Promise<number> {
  const module: { main(): Promise<number> } = await import(file);
  return module.main();
}

function fail(code: number, message: string): number {
  process.stderr.write(`relay: ${message}\n`);
  return code;
}

process.exit(await relay(process.argv.slice(2)));
