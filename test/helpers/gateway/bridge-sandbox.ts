import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import type { Sandbox } from '../../../infra/sandbox/sandbox.ts';

/** A stand-in for a sandbox's streams: the bridge runs as a process of this machine. */
export interface BridgeSandbox extends Pick<Sandbox, 'name'> {
  readonly openStream: NonNullable<Sandbox['openStream']>;
  /** The streams that were opened so far, oldest first. */
  readonly streams: readonly Duplex[];
  /** Kills the newest bridge. Returns whether it ran. */
  kill(): boolean;
}

const bridge = join(import.meta.dirname, '../../../infra/agents/bridge/main.ts');

/** `home` is the directory in which the relay listens. */
export function createBridgeSandbox(home: string, argv: readonly string[] = [process.execPath, bridge]): BridgeSandbox {
  const streams: Duplex[] = [];
  let newest: ChildProcess | undefined;
  return {
    name: 'bridged',
    streams,
    async openStream() {
      const [program = '', ...args] = argv;
      const child = spawn(program, args, { env: { ...process.env, HOME: home }, stdio: ['pipe', 'pipe', 'inherit'] });
      newest = child;
      // An input that its reader has left is no failure of the test.
      child.stdin.on('error', () => undefined);
      const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
      stream.once('close', () => child.kill('SIGKILL'));
      child.once('exit', () => stream.destroy());
      streams.push(stream);
      return stream;
    },
    kill: () => newest?.exitCode === null && newest.kill('SIGKILL'),
  };
}
