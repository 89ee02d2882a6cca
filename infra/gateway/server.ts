import { chmod, mkdir } from 'node:fs/promises';
import { sampledTokensOf } from '../../workflows/algorithms/turns.ts';
import type { Engine } from '../engine/engine.ts';
import { checkPrefix } from '../kits/chat-tokens/index.ts';
import { openModel } from '../open-model.ts';
import type { Store } from '../store/store.ts';
import { createAgentSide } from './http/agent-side.ts';
import { createControlSide } from './http/control-side.ts';
import { createForward } from './http/forward.ts';
import { listenOnSocket } from './http/http.ts';
import { createPeers } from './http/peers.ts';
import { limits } from './limits.ts';
import { createPresence } from './sessions/presence.ts';
import { createSessions } from './sessions/sessions.ts';
import { type GatewaySockets, socketOf } from './sockets.ts';
import { createContextLength } from './turns/context-length.ts';
import type { Upstreams } from './upstream/upstreams.ts';

export interface GatewayOptions {
  /** Of this process, among the gateways that share the directories. */
  readonly name: string;
  readonly sockets: GatewaySockets;
  readonly journalDir: string;
  readonly store: Store;
  readonly engine: Engine;
  readonly upstreams: Upstreams;
  readonly modelDir: string;
  readonly stackKey: Uint8Array;
  readonly log: (event: GatewayEvent) => void;
  /** How long a turn outlasts an engine that is away. */
  readonly holdMs: number;
  /** Whether requests to the engine carry a seed; default: they do. */
  readonly seeds?: boolean;
  /** Instead of the usual ones, see limits.ts. */
  readonly restMs?: number;
  readonly sweepMs?: number;
}

/** What happens in a gateway, for logs and metrics. */
export type GatewayEvent =
  | {
      readonly kind: 'turn';
      readonly session: string;
      readonly turn: number;
      readonly parent: number | null;
      readonly promptTokens: number;
      readonly sampledTokens: number;
      readonly ms: number;
    }
  | { readonly kind: 'refusal'; readonly session: string | null; readonly refusal: string; readonly cause: unknown }
  | { readonly kind: 'sweep-failed' | 'presence-failed'; readonly cause: unknown }
  /** Found at the start: the model's template does not keep what came before such a turn. */
  | {
      readonly kind: 'template-forks';
      readonly template: string;
      readonly turn: string;
      readonly reason: string | null;
      readonly cost: string;
    };

export interface Gateway {
  /** Lets running turns end for a few seconds, then cancels them: clients send those requests again. */
  close(): Promise<void>;
}

const costOfFork =
  'each such turn is rendered as a whole and begins a segment of its own; use a variant of the chat template that keeps earlier turns as they were';

/** Starts both sides of a gateway. A turn is logged after it is durable and before the agent gets the end of its reply. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { engine, upstreams, log, holdMs, name, sockets } = options;
  const peers = createPeers(name, sockets);
  const { forward, close: closeForward } = createForward(peers);
  const model = await openModel(options.modelDir);
  for (const { what, kept, reason } of checkPrefix(model)) {
    if (!kept) log({ kind: 'template-forks', template: options.modelDir, turn: what, reason, cost: costOfFork });
  }
  await mkdir(options.journalDir, { recursive: true, mode: 0o700 });
  const presence = await createPresence(options.journalDir, Date.now());
  const sessions = createSessions({
    name,
    peers,
    presence,
    engine,
    upstreams,
    model,
    holdMs,
    ...(options.seeds !== undefined && { seeds: options.seeds }),
    contextLength: createContextLength(engine, holdMs),
    store: options.store,
    journalDir: options.journalDir,
    restMs: options.restMs ?? limits.restMs,
    onTurn: (session, turn) =>
      log({
        kind: 'turn',
        session,
        turn: turn.index,
        parent: turn.parent,
        promptTokens: turn.promptLength,
        sampledTokens: sampledTokensOf(turn),
        ms: turn.endedAt - turn.startedAt,
      }),
  });
  const agentSide = createAgentSide({
    name,
    forward,
    sessions,
    stackKey: options.stackKey,
    modelName: model.name,
    onRefusal: (session, refusal) =>
      log({ kind: 'refusal', session, refusal: `${refusal.kind}: ${refusal.message}`, cause: refusal.cause }),
  });
  const controlSide = createControlSide(sessions, upstreams, engine);
  await mkdir(sockets.agents, { recursive: true, mode: 0o755 });
  await mkdir(sockets.control, { recursive: true, mode: 0o700 });
  await chmod(sockets.control, 0o700);
  const control = await listenOnSocket(socketOf(sockets.control, name), 'owner', controlSide);
  const agents = await listenOnSocket(socketOf(sockets.agents, name), 'everybody', agentSide);
  const every = (ms: number, failed: 'sweep-failed' | 'presence-failed', act: () => Promise<void>): NodeJS.Timeout =>
    setInterval(() => void act().catch((cause: unknown) => log({ kind: failed, cause })), ms).unref();
  const timers = [
    every(options.sweepMs ?? limits.sweepMs, 'sweep-failed', () => sessions.sweep()),
    every(limits.presenceMs, 'presence-failed', () => presence.confirm()),
  ];

  return {
    async close() {
      for (const timer of timers) clearInterval(timer);
      agents.stop();
      control.stop();
      await sessions.release();
      await Promise.all([agents.close(), control.close()]);
      closeForward();
      await peers.close();
    },
  };
}
