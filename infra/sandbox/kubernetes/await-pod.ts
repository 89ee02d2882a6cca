import type { V1Pod } from '@kubernetes/client-node';
import type { SandboxSpec } from '../sandbox.ts';
import { arrivalFailure, lossOf, stillThere, tooLate } from './explain.ts';
import type { FollowedPod } from './pod-changes.ts';
import type { PodProgress } from './pod-progress.ts';

/** The time in which a deleted Pod must be gone, or its node show that it removes Pods; one that is lost does neither. */
const silentMs = 60_000;
/** The longest time in which a deleted Pod must be gone. A node with hundreds of Pods takes minutes to remove them all at once. */
const goneMs = 300_000;

/** A Pod whose changes are waited for. */
export interface AwaitedPod {
  /** The Pod as it was when it was created, found or deleted. */
  readonly pod: V1Pod;
  readonly followed: FollowedPod;
  /** Reads the Pod that has its name now. */
  read(): Promise<V1Pod | undefined>;
}

export interface Arrival {
  readonly spec: SandboxSpec;
  readonly progress: PodProgress;
  /** The time in which the Pod must run. */
  readonly scheduleSec: number;
}

/** Waits until the Pod of a new sandbox runs, and returns it. Throws the failure that keeps it from running. */
export async function untilRunning(
  awaited: AwaitedPod,
  { spec, progress, scheduleSec }: Arrival,
  signal: AbortSignal,
): Promise<V1Pod> {
  const deadlineMs = Date.now() + scheduleSec * 1000;
  const { uid } = awaited.pod.metadata ?? {};
  let pod: V1Pod | undefined = awaited.pod;
  for (;;) {
    const last: V1Pod = pod ?? awaited.pod;
    const loss = lossOf(spec.name, uid, pod);
    if (loss) throw loss;
    if (last.status?.phase === 'Running') {
      progress.arrived();
      return last;
    }
    const failure = arrivalFailure(last, spec.image);
    if (failure) throw failure;
    if (Date.now() > deadlineMs) throw tooLate(last, spec, scheduleSec, await progress.look(last));
    progress.see(last);
    pod = await nextState(awaited, last, { deadlineMs, signal });
  }
}

/** The times at which this process last saw a Pod of a node gone, by the name of the node. */
export type RemovalTimes = Map<string, number>;

/**
 * Waits until the deleted Pod of a sandbox is gone, for as long as its node shows that it removes Pods: the Pod changes, or
 * others of the node are gone.
 */
export async function untilGone(awaited: AwaitedPod, sandbox: string, removals: RemovalTimes): Promise<void> {
  const { pod } = awaited;
  const node = pod.spec?.nodeName ?? '';
  const beganMs = Date.now();
  let changedMs = beganMs;
  let seen: V1Pod = pod;
  for (;;) {
    const lastSignMs = Math.max(changedMs, removals.get(node) ?? 0);
    const deadlineMs = Math.min(beganMs + goneMs, lastSignMs + silentMs);
    if (Date.now() > deadlineMs) throw stillThere(sandbox, Math.round((Date.now() - beganMs) / 1000));
    const now = await nextState(awaited, seen, { deadlineMs });
    if (now === undefined || now.metadata?.uid !== pod.metadata?.uid) break;
    if (now.metadata?.resourceVersion !== seen.metadata?.resourceVersion) changedMs = Date.now();
    seen = now;
  }
  removals.set(node, Date.now());
  for (const [name, atMs] of removals) if (atMs < Date.now() - silentMs) removals.delete(name);
}

/** Waits for a change of a Pod, and returns the Pod of its name then. */
async function nextState(
  { followed, read }: AwaitedPod,
  seen: V1Pod,
  { deadlineMs, signal }: { readonly deadlineMs: number; readonly signal?: AbortSignal },
): Promise<V1Pod | undefined> {
  const changed = await followed.next(seen, deadlineMs, signal);
  return changed?.metadata?.uid === seen.metadata?.uid ? changed : read();
}
