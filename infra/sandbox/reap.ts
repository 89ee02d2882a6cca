import { attemptAll } from '../attempt-all.ts';
import type { SandboxInfo, SandboxLabels } from './sandbox.ts';

/** Whether a sandbox's rollout is still running; `unknown` if the server knows no such rollout. */
export type Liveness = 'live' | 'over' | 'unknown';

export interface ReapDecision {
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly reason: 'rollout-over' | 'expired' | 'void';
}

export interface ReapTimes {
  /** Whether a sandbox is of an earlier life of this host, so that no rollout uses it any more. */
  readonly isVoid?: (labels: SandboxLabels) => boolean;
  readonly nowMs: number;
  /** A sandbox younger than this may belong to a rollout that the server does not list yet. */
  readonly minAgeMs: number;
}

/** Tolerated difference between the clocks of two hosts. */
const clockSkewMs = 60_000;

/**
 * Decides which of a stack's sandboxes to remove, and why. An agent's sandbox outlives its time to live while its rollout is
 * live, because the rollout's next stage may wait in a queue. An evaluation is over when its time is. A rollout that the
 * server does not know is no reason before that, since it may be in another namespace.
 */
export function decideReaping(
  stack: string,
  sandboxes: readonly SandboxInfo[],
  livenessOf: (sandbox: SandboxInfo) => Liveness,
  { nowMs, minAgeMs, isVoid = () => false }: ReapTimes,
): readonly ReapDecision[] {
  const own = sandboxes.filter(({ labels }) => labels.stack === stack);
  return own.flatMap((sandbox): readonly ReapDecision[] => {
    const { name, labels, createdAtMs } = sandbox;
    if (isVoid(labels)) return [{ name, labels, reason: 'void' }];
    const liveness = livenessOf(sandbox);
    const kept = liveness === 'live' && labels.purpose === 'agent';
    if (!kept && nowMs > labels.expiresAtMs + clockSkewMs) return [{ name, labels, reason: 'expired' }];
    const oldEnough = nowMs - createdAtMs >= minAgeMs;
    return oldEnough && liveness === 'over' ? [{ name, labels, reason: 'rollout-over' }] : [];
  });
}

/** The shortest time between the two looks that prove an orphan; lists of some providers lag by half a minute. */
const confirmAfterMs = 30_000;

/** The memory of one reaper about one provider. */
export interface Sightings {
  /**
   * Returns the decisions that every pass of at least the last 30 seconds has made, and those that need no second look. A
   * decision that a pass does not make again is forgotten.
   */
  confirm(decisions: readonly ReapDecision[]): readonly ReapDecision[];
}

/** Creates the memory of a reaper; `now` is a clock that never jumps. */
export function createSightings(now: () => number = () => performance.now()): Sightings {
  let firstSeenMs = new Map<string, number>();
  return {
    confirm: (decisions) => {
      const nowMs = now();
      firstSeenMs = new Map(decisions.map(({ name }) => [name, firstSeenMs.get(name) ?? nowMs]));
      return decisions.filter(
        // The fencing token itself proves that a sandbox is of an earlier life.
        ({ name, reason }) => reason === 'void' || nowMs - (firstSeenMs.get(name) ?? nowMs) >= confirmAfterMs,
      );
    },
  };
}

/** The time by which a sandbox is kept longer, and the time before its end at which that happens. The reaper comes every minute. */
const renewByMs = 900_000;
const renewBeforeMs = 300_000;

/** Returns the agents' sandboxes whose time to live ends soon although their rollouts are live, because the next stage may wait. */
export function decideRenewals(
  stack: string,
  sandboxes: readonly SandboxInfo[],
  livenessOf: (sandbox: SandboxInfo) => Liveness,
  nowMs: number,
): readonly { readonly name: string; readonly expiresAtMs: number }[] {
  return sandboxes
    .filter(({ labels }) => labels.stack === stack && labels.purpose === 'agent')
    .filter((sandbox) => nowMs > sandbox.labels.expiresAtMs - renewBeforeMs && livenessOf(sandbox) === 'live')
    .map(({ name }) => ({ name, expiresAtMs: nowMs + renewByMs }));
}

export interface ReapRequest {
  readonly stack: string;
  /** The sandboxes of this host. */
  readonly sandboxes: readonly SandboxInfo[];
  /** Finds out which rollouts are running; those that the server does not know are left out. */
  readonly livenessOf: (rollouts: readonly string[]) => Promise<ReadonlyMap<string, Liveness>>;
  readonly minAgeMs: number;
  readonly isVoid?: ReapTimes['isVoid'];
  /** The memory of earlier passes: a sandbox is removed once two looks have found it orphaned. */
  readonly sightings: Sightings;
  readonly remove: (decision: ReapDecision) => Promise<unknown>;
  /** Moves the end of a sandbox's time to live at its provider; absent where a provider ends none. */
  readonly renew?: ((name: string, expiresAtMs: number) => Promise<unknown>) | undefined;
}

export interface ReapResult {
  /** Sandboxes that look orphaned and are removed once the next look confirms it. */
  readonly suspected: readonly string[];
}

/**
 * Removes the sandboxes whose rollout is over, and keeps those alive whose rollout continues. A sandbox that can't be removed does
 * not block the others. While the server does not answer, every rollout counts as live, and the error is thrown at the end.
 */
export async function reap(request: ReapRequest): Promise<ReapResult> {
  const { stack, sandboxes, livenessOf, minAgeMs, isVoid, sightings, remove, renew } = request;
  const rollouts = new Set(sandboxes.map(({ labels }) => labels.rollout));
  const asked = await livenessOf([...rollouts]).then(
    (known) => ({ known }),
    (error: unknown) => ({ error }),
  );
  const liveness = ({ labels }: SandboxInfo): Liveness =>
    'error' in asked ? 'live' : (asked.known.get(labels.rollout) ?? 'unknown');
  const nowMs = Date.now();
  const decisions = decideReaping(stack, sandboxes, liveness, {
    nowMs,
    minAgeMs,
    ...(isVoid && { isVoid }),
  });
  const confirmed = sightings.confirm(decisions);
  const renewals = renew ? decideRenewals(stack, sandboxes, liveness, nowMs) : [];
  const steps = [
    ...confirmed.map((decision) => () => remove(decision)),
    ...renewals.map(
      ({ name, expiresAtMs }) =>
        async () =>
          renew?.(name, expiresAtMs),
    ),
  ];
  await attemptAll<() => Promise<unknown>>(
    steps,
    `to remove ${confirmed.length} and to renew ${renewals.length} sandboxes`,
    (step) => step(),
  );
  if ('error' in asked) throw asked.error;
  return { suspected: decisions.filter((decision) => !confirmed.includes(decision)).map(({ name }) => name) };
}
