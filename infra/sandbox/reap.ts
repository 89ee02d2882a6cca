import { attemptAll } from '../attempt-all.ts';
import type { SandboxInfo, SandboxLabels } from './sandbox.ts';

/** Whether a sandbox's rollout is still running; `unknown` if the server could not tell. */
export type Liveness = 'live' | 'over' | 'unknown';

export interface ReapDecision {
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly reason: 'rollout-over' | 'expired';
}

export interface ReapTimes {
  readonly nowMs: number;
  /** A sandbox younger than this may belong to a rollout that the server does not list yet. */
  readonly minAgeMs: number;
}

/** Tolerated difference between the clocks of two hosts. */
const clockSkewMs = 60_000;

/**
 * Decides which of a stack's sandboxes to remove, and why. Uncertainty is never a reason: while the server is unreachable or the
 * namespace unknown, only sandboxes past their time to live are removed, since no rollout outlives that.
 */
export function decideReaping(
  stack: string,
  sandboxes: readonly SandboxInfo[],
  livenessOf: (sandbox: SandboxInfo) => Liveness,
  { nowMs, minAgeMs }: ReapTimes,
): readonly ReapDecision[] {
  const own = sandboxes.filter(({ labels }) => labels.stack === stack);
  return own.flatMap((sandbox): readonly ReapDecision[] => {
    const { name, labels, createdAtMs } = sandbox;
    if (nowMs > labels.expiresAtMs + clockSkewMs) return [{ name, labels, reason: 'expired' }];
    const oldEnough = nowMs - createdAtMs >= minAgeMs;
    return oldEnough && livenessOf(sandbox) === 'over' ? [{ name, labels, reason: 'rollout-over' }] : [];
  });
}

export interface ReapRequest {
  readonly stack: string;
  /** The sandboxes of this host. */
  readonly sandboxes: readonly SandboxInfo[];
  /** Finds out whether the rollout of a sandbox is running; an error counts as `unknown`. */
  readonly livenessOf: (sandbox: SandboxInfo) => Promise<Liveness>;
  readonly minAgeMs: number;
  readonly remove: (decision: ReapDecision) => Promise<unknown>;
}

/** Removes the sandboxes whose rollout is over. A sandbox that can't be removed does not block the others. */
export async function reap(request: ReapRequest, signal: AbortSignal): Promise<void> {
  const { stack, sandboxes, livenessOf, minAgeMs, remove } = request;
  const liveness = new Map<string, Liveness>();
  for (const sandbox of sandboxes) {
    signal.throwIfAborted();
    liveness.set(sandbox.name, await livenessOf(sandbox).catch(() => 'unknown'));
  }
  const known = ({ name }: SandboxInfo): Liveness => liveness.get(name) ?? 'unknown';
  const decisions = decideReaping(stack, sandboxes, known, { nowMs: Date.now(), minAgeMs });
  await attemptAll(decisions, `to remove ${decisions.length} sandboxes`, remove);
}
