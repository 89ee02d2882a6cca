import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import type { Availability } from '../../runner/need.ts';

/**
 * A machine of a fleet on this one: processes in a network and a mount namespace of their own, which see the directory of no
 * other machine, and reach nothing but the ports that are forwarded to them.
 */
export interface Machine {
  readonly name: string;
  /** The address at which the machine finds the forwarded ports. */
  readonly gateway: string;
  /** Forwards a port of this computer's loopback address, or of another address, and returns the port to connect to. */
  forward(port: number, address?: string): Promise<number>;
  /** Starts a program on the machine. */
  spawn(command: readonly [string, ...string[]], options: SpawnOptions): ChildProcess;
  /** Disconnects the network, so that packets are lost without a word. */
  cut(): void;
  /** Connects it again. */
  restore(): void;
  /** Removes the namespaces. The processes on the machine must have ended. */
  remove(): void;
}

export interface MachineOptions {
  /** Directories of other machines, which this one must not see. */
  readonly hidden: readonly string[];
}

const ip = (...args: readonly string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

let machines = 0;

/** Creates a machine; only root may. */
export function createMachine({ hidden }: MachineOptions): Machine {
  const id = randomBytes(3).toString('hex');
  const [name, outside, inside] = [`temper-${id}`, `tmpo${id}`, `tmpi${id}`];
  machines += 1;
  // A network of two addresses, in a range for benchmarks and tests (RFC 2544). The process id keeps parallel tests apart.
  const subnet = `198.${18 + (process.pid & 1)}.${(process.pid >> 1) & 255}`;
  const [gateway, address] = [`${subnet}.${4 * machines + 1}`, `${subnet}.${4 * machines + 2}`];
  ip('netns', 'add', name);
  ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', name);
  ip('address', 'add', `${gateway}/30`, 'dev', outside);
  ip('link', 'set', outside, 'up');
  ip('-n', name, 'address', 'add', `${address}/30`, 'dev', inside);
  ip('-n', name, 'link', 'set', inside, 'up');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  const forwards: Server[] = [];
  const incomings = new Set<Socket>();
  const hide = hidden.map((directory) => `mount -t tmpfs none '${directory}'`).join(' && ');
  return {
    name,
    gateway,
    async forward(port, to = '127.0.0.1') {
      const server = createServer((incoming) => {
        const outgoing = connect(port, to);
        incomings.add(incoming);
        const end = (): void => {
          incomings.delete(incoming);
          incoming.destroy();
          outgoing.destroy();
        };
        incoming.on('error', end).on('close', end).pipe(outgoing);
        outgoing.on('error', end).on('close', end).pipe(incoming);
      });
      server.listen(0, gateway);
      await once(server, 'listening');
      server.unref();
      forwards.push(server);
      return (server.address() as AddressInfo).port;
    },
    spawn: ([program, ...args], options) => {
      const script = `${hide === '' ? '' : `${hide} && `}exec "$0" "$@"`;
      const inNamespaces = [
        'netns',
        'exec',
        name,
        'unshare',
        '--mount',
        '--propagation',
        'private',
        'sh',
        '-c',
        script,
      ];
      return spawn('ip', [...inNamespaces, program, ...args], options);
    },
    cut: () => ip('link', 'set', outside, 'down'),
    restore: () => ip('link', 'set', outside, 'up'),
    remove() {
      for (const server of forwards) server.close();
      // Without the link, a connection that is not closed yet would last for the quarter of an hour in which TCP tries again.
      for (const incoming of incomings) incoming.destroy();
      ip('link', 'delete', outside);
      ip('netns', 'delete', name);
    },
  };
}

/** Finds out whether this computer can run the tests that need several machines. */
export function probeMachines(): Availability {
  try {
    createMachine({ hidden: [] }).remove();
    return { usable: true };
  } catch (error) {
    return {
      usable: false,
      reason: `this user may not create network namespaces with \`ip netns\` (${errorMessage(error)})`,
    };
  }
}
