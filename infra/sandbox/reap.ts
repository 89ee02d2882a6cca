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

export interface ReapRequest {
  readonly stack: string;
  /** The sandboxes of this host. */
  readonly sandboxes: readonly SandboxInfo[];
  /** Finds out which rollouts are running; those that the server does not know are left out. */
  readonly livenessOf: (rollouts: readonly string[]) => Promise<ReadonlyMap<string, Liveness>>;
  readonly minAgeMs: number;
  readonly isVoid?: ReapTimes['isVoid'];
  readonly remove: (decision: ReapDecision) => Promise<unknown>;
}

/**
 * Removes the sandboxes whose rollout is over. A sandbox that can't be removed does not block the others. While the server does
 * not answer, every rollout counts as live, and the error is thrown at the end.
 */
export async function reap(request: ReapRequest): Promise<void> {
  const { stack, sandboxes, livenessOf, minAgeMs, isVoid, remove } = request;
  const rollouts = new Set(sandboxes.map(({ labels }) => labels.rollout));
  const asked = await livenessOf([...rollouts]).then(
    (known) => ({ known }),
    (error: unknown) => ({ error }),
  );
  const liveness = ({ labels }: SandboxInfo): Liveness =>
    'error' in asked ? 'live' : (asked.known.get(labels.rollout) ?? 'unknown');
  const decisions = decideReaping(stack, sandboxes, liveness, {
    nowMs: Date.now(),
    minAgeMs,
    ...(isVoid && { isVoid }),
  });
  await attemptAll(decisions, `to remove ${decisions.length} sandboxes`, remove);
  if ('error' in asked) throw asked.error;
}
