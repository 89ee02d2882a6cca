import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { egressService, modelService } from '../../agents/relay/protocol.ts';
import { runProgram } from '../../agents/runtime.ts';
import type { Account, ChannelKind, Sandbox } from '../../sandbox/sandbox.ts';
import { listenForSession } from '../session-socket.ts';
import { directoryNameOf, directoryToMount, type GatewaySockets } from '../sockets.ts';
import { createEgressService } from './egress-service.ts';
import { type Held, hold } from './hold.ts';
import { createModelService } from './model-service.ts';
import { type Service, serveChannel } from './serve.ts';

/** The way in which the model calls of an agent reach the gateways. */
export interface Channel {
  /** Returns the directory of the session's sockets that is mounted into its sandbox; null if none is. */
  gatewayDir(session: string): Promise<string | null>;
  /** Carries the model calls and other connections of a sandbox until it is closed. It opens what breaks again. */
  hold(sandbox: Pick<Sandbox, 'name' | 'openStream'>, call: HeldSession): Held;
}

export interface HeldSession {
  /** The session of the model calls; null: there are none. */
  readonly session: string | null;
  /** The account under which the relay runs. Default: the agent's. */
  readonly account?: Account;
  /** Serves connections to the outside. Default: there are none. */
  readonly egress?: Egress | undefined;
  /** Resolves when the channel may be opened. Default: always. */
  readonly ready?: (signal: AbortSignal) => Promise<void>;
  /** Called when the channel has been broken for a while. It is tried again all the same. */
  readonly onOutage: (cause: unknown) => void;
}

export interface Egress {
  serve(connection: Duplex): void;
  /** The path of the socket for them, whose directory is mounted into a sandbox without streams. */
  readonly socketPath: string;
}

type Sockets = Pick<GatewaySockets, 'sessions' | 'agents'>;

/** The kinds of channel by name. */
export const createChannels = (sockets: Sockets): Readonly<Record<ChannelKind, Channel>> => ({
  socket: createSocketChannel(sockets),
  stream: createStreamChannel(sockets),
});

/** Mounts sockets into the sandbox; no process has to carry anything but connections to the outside. */
function createSocketChannel(sockets: Sockets): Channel {
  return {
    gatewayDir: (session) => directoryToMount(sockets, session),
    hold(_, { egress, onOutage }) {
      if (egress === undefined) return { close: () => undefined };
      const listening = listenForSession({ path: egress.socketPath, onConnection: egress.serve, onError: onOutage });
      listening.catch(onOutage);
      return {
        close: () =>
          void listening.then(
            (socket) => socket.close(),
            () => undefined,
          ),
      };
    },
  };
}

/** Carries the calls over a stream to a command in the sandbox, which needs neither a mount nor a network. */
function createStreamChannel({ sessions }: Sockets): Channel {
  return {
    gatewayDir: async () => null,
    hold(sandbox, { session, account = 'agent', egress, ready, onOutage }) {
      const services = new Map<string, Service>();
      const models =
        session === null ? null : createModelService({ session, directory: join(sessions, directoryNameOf(session)) });
      if (models !== null) services.set(modelService, models.serve);
      if (egress !== undefined) services.set(egressService, createEgressService(egress));
      const held = hold({
        async open(signal) {
          await ready?.(signal);
          const stream = await sandbox.openStream?.({ ...bridge, account }, signal);
          if (stream === undefined) throw new Error(`sandbox ${sandbox.name} has no streams`);
          return stream;
        },
        serve: (stream) => serveChannel(stream, services),
        onOutage,
      });
      return {
        close() {
          held.close();
          models?.close();
        },
      };
    },
  };
}

const [program = '', ...args] = runProgram('bridge', []);
const bridge = { argv: [program, ...args], env: {} } as const;
