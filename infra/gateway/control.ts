import { z } from 'zod';
import { sessionSettings } from '../../workflows/contracts/rollout.ts';
import type { TraceSummary } from '../../workflows/contracts/trace.ts';
import { type Upstream, upstream } from '../../workflows/contracts/upstream.ts';

/**
 * The gateway's control side, for our own workers only (not reachable from a sandbox).
 * All calls are create-or-get by session id. Throws TemperFailure GatewayUnavailable when it does not answer.
 */
export interface GatewayControl {
  open(session: OpenSession, signal?: AbortSignal): Promise<Opened>;
  /** Null when no such session was opened. */
  status(session: string, signal?: AbortSignal): Promise<SessionStatus | null>;
  /** Closes the session, freezes its journal, builds segments, writes the trace to the store: write-once, repeatable. */
  seal(session: string, signal?: AbortSignal): Promise<TraceSummary>;
  /** Refuses further turns and cancels running ones, without sealing. */
  close(session: string, signal?: AbortSignal): Promise<void>;
  /** Per group label, in the order asked: the smallest policy version over the tokens sampled so far, null when none was. */
  minVersions(groups: readonly string[], signal?: AbortSignal): Promise<readonly (number | null)[]>;
  /** Which policy versions the engines serve now. Throws EngineUnavailable when none answers. */
  serving(signal?: AbortSignal): Promise<Serving>;
  /** Has the engines go on serving a version, for sessions that name it, when others are published; false where one of them can't. */
  hold(version: number, signal?: AbortSignal): Promise<boolean>;
  /** The upstream model that is configured under a name. Throws UnknownUpstream, and InvalidInput where its configuration is wrong. */
  upstream(name: string, signal?: AbortSignal): Promise<Upstream>;
}

export interface Serving {
  /** What is sampled by where nothing else is asked for; null when nothing was published. */
  readonly version: number | null;
  /** All that can be sampled by. */
  readonly versions: readonly number[];
}

/** A session to open: the settings of its rollout, and what the gateway has to know beside them. */
export const openSession = sessionSettings.extend({
  session: z.string().describe('The id of the session.'),
  expiresAt: z.number().describe('The time at which the session is dropped, in milliseconds since the epoch.'),
  seed: z.int().describe('The seed of the session; each turn samples with a value derived from it.'),
  group: z
    .string()
    .nullable()
    .describe("The label of the rollout's group, under which its policy versions are asked for; null outside a run."),
  upstream: upstream.optional().describe('The upstream model that answers instead of the policy.'),
});
export type OpenSession = Readonly<z.output<typeof openSession>>;

export interface Opened {
  /** Of the model, in tokens; null when its engine does not answer, or nobody says it of an upstream model. */
  readonly contextLength: number | null;
}

export interface SessionStatus {
  readonly state: 'open' | 'closed' | 'sealed';
  readonly turns: number;
  readonly inFlight: number;
  readonly minVersion: number | null;
  readonly lastActivityAt: number;
}
