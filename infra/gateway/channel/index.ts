import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { egressService, modelService } from '../../agents/relay/protocol.ts';
import { runProgram } from '../../agents/runtime.ts';
import type { ChannelKind, Sandbox } from '../../sandbox/sandbox.ts';
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
  /** Carries the model calls of a sandbox's agent until it is closed. It opens what breaks again. */
  hold(sandbox: Pick<Sandbox, 'name' | 'openStream'>, call: HeldSession): Held;
}

export interface HeldSession {
  readonly session: string;
  /** Serves the agent's connections to the outside. Default: there are none. */
  readonly egress?: Egress | undefined;
  /** Resolves when the channel may be opened. Default: always. */
  readonly ready?: (signal: AbortSignal) => Promise<void>;
  /** Called when the channel has been broken for a while. It is tried again all the same. */
  readonly onOutage: (cause: unknown) => void;
}

export interface Egress {
  serve(connection: Duplex): void;
}

type Sockets = Pick<GatewaySockets, 'sessions' | 'agents'>;

/** The kinds of channel by name. */
export const createChannels = (sockets: Sockets): Readonly<Record<ChannelKind, Channel>> => ({
  socket: createSocketChannel(sockets),
  stream: createStreamChannel(sockets),
});

/** Mounts the session's sockets into the sandbox; no process has to carry anything but connections to the outside. */
function createSocketChannel(sockets: Sockets): Channel {
  return {
    gatewayDir: (session) => directoryToMount(sockets, session),
    hold(_, { session, egress, onOutage }) {
      if (egress === undefined) return { close: () => undefined };
      const path = join(sockets.sessions, directoryNameOf(session), egressService);
      const listening = listenForSession({ path, onConnection: egress.serve, onError: onOutage });
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
    hold(sandbox, { session, egress, ready, onOutage }) {
      const models = createModelService({ session, directory: join(sessions, directoryNameOf(session)) });
      const services = new Map<string, Service>([[modelService, models.serve]]);
      if (egress !== undefined) services.set(egressService, createEgressService(egress));
      const held = hold({
        async open(signal) {
          await ready?.(signal);
          const stream = await sandbox.openStream?.(bridge, signal);
          if (stream === undefined) throw new Error(`sandbox ${sandbox.name} has no streams`);
          return stream;
        },
        serve: (stream) => serveChannel(stream, services),
        onOutage,
      });
      return {
        close() {
          held.close();
          models.close();
        },
      };
    },
  };
}

const [program = '', ...args] = runProgram('bridge', []);
const bridge = { account: 'agent', argv: [program, ...args], env: {} } as const;
