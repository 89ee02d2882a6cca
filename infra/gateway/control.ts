import { z } from 'zod';
import { blobRef } from '../../workflows/contracts/blob.ts';
import type { ModelUse } from '../../workflows/contracts/cost.ts';
import { type PolicyRef, policyRef } from '../../workflows/contracts/policy.ts';
import { sessionSettings } from '../../workflows/contracts/rollout.ts';
import type { TraceSummary } from '../../workflows/contracts/trace.ts';
import { type Upstream, upstream } from '../../workflows/contracts/upstream.ts';

/**
 * The gateway's control side, for temper's own workers only (not reachable from a sandbox). Every call may be repeated.
 * Throws TemperFailure GatewayUnavailable when no gateway answers.
 */
export interface GatewayControl {
  /** Opens a session, or returns the open one with the same id. */
  open(session: OpenSession, signal?: AbortSignal): Promise<Opened>;
  /**
   * Takes a session over from a lost host of that name, which wrote its journal on the volume that this one shares. Returns whether
   * there was one.
   */
  adopt(adoption: Adoption, signal?: AbortSignal): Promise<boolean>;
  /** Returns a session's status; null when no such session was opened. */
  status(session: string, signal?: AbortSignal): Promise<SessionStatus | null>;
  /** Closes the session, builds its segments and writes the trace to the store, once. */
  seal(session: string, signal?: AbortSignal): Promise<TraceSummary>;
  /** Refuses further turns and cancels running ones, without sealing. Returns what its turns cost; null if that is unknown. */
  close(session: string, signal?: AbortSignal): Promise<ModelUse | null>;
  /**
   * Returns for each group label, in the same order, the smallest policy version over the tokens sampled so far; null when
   * none was sampled.
   */
  minVersions(groups: readonly string[], signal?: AbortSignal): Promise<readonly (number | null)[]>;
  /**
   * Returns the versions of a policy that the engines serve; without one, of what is in service. Throws EngineUnavailable when
   * no engine answers.
   */
  serving(policy: PolicyRef | null, signal?: AbortSignal): Promise<Serving>;
  /**
   * Keeps a version loaded for the sessions that name it, when others are published. Returns false where an engine cannot
   * keep it.
   */
  pinVersion(pin: VersionPin, signal?: AbortSignal): Promise<boolean>;
  /** Returns the upstream model of a name. Throws UnknownUpstream, or InvalidInput where its configuration is wrong. */
  upstream(name: string, signal?: AbortSignal): Promise<Upstream>;
}

export const adoption = z.object({ session: z.string(), from: z.string() });
export type Adoption = Readonly<z.output<typeof adoption>>;

export const serving = z.object({
  version: z.int().nullable().describe('The version that samples by default; null when none was published.'),
  versions: z.array(z.int()).readonly().describe('All versions that can sample.'),
});
export type Serving = Readonly<z.output<typeof serving>>;

export const versionPin = z.object({ policy: policyRef.nullable(), version: z.int().min(0) });
export type VersionPin = Readonly<z.output<typeof versionPin>>;

/** A session to open: the settings of its rollout, and its own fields. */
export const openSession = sessionSettings.extend({
  session: z.string().describe('The id of the session.'),
  expiresAt: z.number().describe('The time at which the session is dropped, in milliseconds since the epoch.'),
  seed: z.string().describe('The seed of the session; each turn samples with a number derived from it.'),
  group: z
    .string()
    .nullable()
    .describe("The label of the rollout's group, under which its policy versions are asked for; null outside a run."),
  policy: policyRef.optional().describe('The policy that samples; absent where no run is known.'),
  fence: z
    .string()
    .optional()
    .describe('The fencing token of the host that opens the session; by default that which the gateway knows.'),
  adoptedFrom: z
    .array(z.string())
    .readonly()
    .optional()
    .describe('The lost hosts that had the session before, in order; absent if none had.'),
  task: z.object({ id: z.string(), bundle: blobRef }).optional().describe('The task, for sessions with host tools.'),
  upstream: upstream.optional().describe('The upstream model that answers instead of the policy.'),
});
export type OpenSession = Readonly<z.output<typeof openSession>>;

export const opened = z.object({
  contextLength: z
    .int()
    .nullable()
    .describe(
      "The model's context length in tokens; null when its engine does not answer, or none is configured for an upstream model.",
    ),
});
export type Opened = Readonly<z.output<typeof opened>>;

export const sessionStatus = z.object({
  state: z.enum(['open', 'closed', 'sealed']),
  turns: z.int(),
  inFlight: z.int(),
  minVersion: z.int().nullable(),
  lastActivityAt: z.number(),
  waitedMs: z.number().describe('The time in which all running turns of the session waited for an engine, so far.'),
});
export type SessionStatus = Readonly<z.output<typeof sessionStatus>>;
