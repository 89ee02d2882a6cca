import { chmod, mkdir } from 'node:fs/promises';
import { sampledTokensOf } from '../../workflows/algorithms/turns.ts';
import { endlessLease, type Lease } from '../hosts/lease.ts';
import { checkPrefix, type Model } from '../kits/chat-tokens/index.ts';
import { openModel } from '../open-model.ts';
import { makeDirectory } from '../process/durable-directory.ts';
import type { StackKeys } from '../stack.ts';
import type { Store } from '../store/store.ts';
import type { TurnRecord } from './branches/turn-record.ts';
import type { GatewayError } from './gateway-error.ts';
import { createAgentSide } from './http/agent-side.ts';
import { createControlSide } from './http/control-side.ts';
import { createForward } from './http/forward.ts';
import { listenOnSocket } from './http/listener.ts';
import { createSessionSockets, type SessionSockets } from './http/session-sockets.ts';
import { limits } from './limits.ts';
import { limitFailures } from './logged-failures.ts';
import { createPeers } from './peers.ts';
import { createPresence, type Presence } from './sessions/presence.ts';
import { createSessions, type Sessions } from './sessions/sessions.ts';
import { type GatewaySockets, socketOf } from './sockets.ts';
import type { TaskFiles } from './tools/task-files.ts';
import { createToolbox, type Toolbox } from './tools/toolbox.ts';
import type { PolicyEngines } from './turns/policy-engines.ts';
import type { Upstreams } from './upstream/upstreams.ts';

export interface GatewayOptions {
  /** The name of this process, among the gateways that share the directories. */
  readonly name: string;
  readonly sockets: GatewaySockets;
  readonly journalDir: string;
  /** The directory that holds the journal directories of all hosts. Default: none, and no session is adopted. */
  readonly sharedJournals?: string | null;
  readonly store: Store;
  readonly policies: PolicyEngines;
  readonly upstreams: Upstreams;
  readonly modelDir: string;
  /** Keys of which any opens a session's secret. */
  readonly stackKeys: StackKeys;
  /** The lease of the host, without which the gateway answers nothing. Default: one without an end. */
  readonly lease?: Lease;
  /** The tools that sessions may offer. Default: temper's own. */
  readonly toolbox?: Toolbox;
  /** Reads what tasks have for host tools. Default: nothing. */
  readonly taskFiles?: TaskFiles;
  readonly log: (event: GatewayEvent) => void;
  /** The time that a turn waits for an engine that is away. */
  readonly engineGraceMs: number;
  /** Whether requests to the engine carry a seed. Default: true. */
  readonly seeds?: boolean;
  /** Overrides the limits of the same names. */
  readonly idleMs?: number;
  readonly cleanUpMs?: number;
}

/** A task that the gateway repeats, and that failed this time. */
type FailedTask = 'clean-up-failed' | 'presence-failed' | 'sockets-failed';

/** The events of a gateway, for logs and metrics. */
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
  | {
      readonly kind: 'request-failed';
      readonly session: string | null;
      readonly error: string;
      readonly cause: unknown;
    }
  | { readonly kind: 'host-tool-failed'; readonly session: string; readonly tool: string; readonly cause: unknown }
  /** A turn that was cut and not written: its tokens count unless the gateway is killed. */
  | { readonly kind: 'cut-unwritten'; readonly session: string; readonly cause: unknown }
  | { readonly kind: FailedTask; readonly cause: unknown }
  /** The socket of a session, or null for one that all sessions share. */
  | { readonly kind: 'socket-failed'; readonly session: string | null; readonly cause: unknown }
  /** Logged at the start, when the model's template does not keep earlier text before such a turn. */
  | {
      readonly kind: 'template-forks';
      readonly template: string;
      readonly turn: string;
      readonly reason: string | null;
      readonly cost: string;
    };

export interface Gateway {
  /** Lets running turns end for a few seconds, then cancels them; their clients retry. */
  close(): Promise<void>;
}

const costOfFork =
  'each such turn is rendered as a whole and begins its own segment; use a variant of the chat template that keeps earlier turns as they were';

/** Starts both sides of a gateway. A turn is logged after it is durable and before the agent gets the end of its reply. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { policies, upstreams, log, engineGraceMs, name, sockets } = options;
  const peers = createPeers(name, sockets);
  const { forward, close: closeForward } = createForward(peers);
  const model = await openModel(options.modelDir);
  logForks(options, model);
  await makeDirectory(options.journalDir, 0o700);
  const presence = await createPresence(options.journalDir, Date.now());
  const sessions = createSessions({
    name,
    peers,
    presence,
    policies,
    lease: options.lease ?? endlessLease,
    upstreams,
    model,
    engineGraceMs,
    seeds: options.seeds,
    store: options.store,
    journalDir: options.journalDir,
    sharedJournals: options.sharedJournals ?? null,
    idleMs: options.idleMs ?? limits.idleMs,
    toolbox: options.toolbox ?? createToolbox(),
    taskFiles: options.taskFiles ?? (async () => new Map()),
    onTurn: (session, turn) => log(turnEvent(session, turn)),
    onHostToolFailure: (session, tool, cause) => log({ kind: 'host-tool-failed', session, tool, cause }),
    onCutUnwritten: (session, cause) => log({ kind: 'cut-unwritten', session, cause }),
  });
  const sessionSockets = createSessionSockets({
    root: sockets.sessions,
    name,
    onConnection: (socket) => agents.serve(socket),
    onError: (session, cause) => log({ kind: 'socket-failed', session, cause }),
  });
  const agentSide = createAgentSide({
    name,
    forward,
    sessions,
    stackKeys: options.stackKeys,
    modelName: model.name,
    sessionOf: (socket) => sessionSockets.sessionOf(socket),
    onError: limitFailures((session, error, note) => log(failureEvent(session, error, note))),
  });
  const controlSide = createControlSide({ sessions, sockets: sessionSockets, upstreams, policies });
  await mkdir(sockets.agents, { recursive: true, mode: 0o755 });
  await mkdir(sockets.control, { recursive: true, mode: 0o700 });
  await chmod(sockets.control, 0o700);
  const onError = (cause: unknown): void => log({ kind: 'socket-failed', session: null, cause });
  const agents = await listenOnSocket(socketOf(sockets.agents, name), 'everyone', { handler: agentSide, onError });
  await sessionSockets.synchronise().catch((cause: unknown) => log({ kind: 'sockets-failed', cause }));
  // The control side comes last: who finds it answering may use all other sockets.
  const control = await listenOnSocket(socketOf(sockets.control, name), 'owner', { handler: controlSide, onError });
  const timers = startTimers(options, { sessions, presence, sessionSockets });

  return {
    async close() {
      timers.stop();
      await sessionSockets.close();
      agents.stop();
      control.stop();
      await sessions.release();
      await Promise.all([agents.close(), control.close()]);
      closeForward();
      await peers.close();
    },
  };
}

function turnEvent(session: string, turn: TurnRecord): GatewayEvent {
  return {
    kind: 'turn',
    session,
    turn: turn.index,
    parent: turn.parent,
    promptTokens: turn.promptLength,
    sampledTokens: sampledTokensOf(turn),
    ms: turn.endedAt - turn.startedAt,
  };
}

function failureEvent(session: string | null, { kind, message, cause }: GatewayError, note: string): GatewayEvent {
  return { kind: 'request-failed', session, error: `${kind}: ${message}${note}`, cause };
}

function logForks({ log, modelDir }: GatewayOptions, model: Model): void {
  for (const { what, kept, reason } of checkPrefix(model)) {
    if (!kept) log({ kind: 'template-forks', template: modelDir, turn: what, reason, cost: costOfFork });
  }
}

interface Periodic {
  readonly sessions: Pick<Sessions, 'cleanUp'>;
  readonly presence: Pick<Presence, 'confirm'>;
  readonly sessionSockets: Pick<SessionSockets, 'synchronise'>;
}

function startTimers({ log, cleanUpMs }: GatewayOptions, { sessions, presence, sessionSockets }: Periodic) {
  const every = (ms: number, failed: FailedTask, act: () => Promise<void>): NodeJS.Timeout =>
    setInterval(() => void act().catch((cause: unknown) => log({ kind: failed, cause })), ms).unref();
  const timers = [
    every(cleanUpMs ?? limits.cleanUpMs, 'clean-up-failed', () => sessions.cleanUp()),
    every(limits.presenceMs, 'presence-failed', () => presence.confirm()),
    every(limits.socketsMs, 'sockets-failed', () => sessionSockets.synchronise()),
  ];
  return {
    stop() {
      for (const timer of timers) clearInterval(timer);
    },
  };
}
