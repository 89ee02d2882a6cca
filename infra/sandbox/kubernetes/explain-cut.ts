import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { apiStatus } from './answers.ts';
import type { Connection } from './connection.ts';
import { stoppedContainer } from './keeper-failure.ts';

/** The delays after which a Pod is looked at again: its connection may break before the API knows why. */
const lossWaitsMs = [0, 200, 1_000, 3_000];
/** The same where the runtime says that the container has stopped, so that the API will say it, too, if only late on a busy node. */
const stopWaitsMs = [...lossWaitsMs, 5_000, 10_000, 15_000];

/** A Pod behind a connection that may be cut. */
export interface ReachedPod {
  /** The name of the sandbox. */
  readonly name: string;
  /** Whether agent and grader are root. */
  readonly root: boolean;
  connect(): Promise<Connection>;
  /** Explains why the Pod no longer runs; undefined if it runs. */
  findLoss(): Promise<SandboxFailure | undefined>;
  /** Explains how what runs in the sandbox keeps temper from it; undefined if it does not. */
  findBlock(cause: unknown): Promise<SandboxFailure | undefined>;
}

/** Does work over a connection, and explains what broke it: the loss of the sandbox if its Pod is gone, else a cut. */
export async function explained<T>(pod: ReachedPod, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    signal?.throwIfAborted();
    throw (await findReason(pod, cause)) ?? cutFailure(pod.name, cause);
  }
}

/** Connects to a Pod, or explains why it cannot. An agent that is root may keep temper out for a moment, so it tries twice there. */
export async function connectExplained(pod: ReachedPod): Promise<Connection> {
  const connect = (): Promise<Connection> => pod.connect();
  try {
    return await connect();
  } catch (cause) {
    const reason = await findReason(pod, cause);
    if (reason !== undefined) throw reason;
    if (!pod.root) throw cutFailure(pod.name, cause);
    return explained(pod, connect);
  }
}

/** Returns the reason of an error: itself if it says it, or the state of the Pod; undefined if the connection was only cut. */
async function findReason(pod: ReachedPod, cause: unknown): Promise<unknown> {
  if (cause instanceof SandboxFailure || apiStatus(cause) !== undefined) return cause;
  const isStopped = stoppedContainer.test(errorMessage(cause));
  for (const waitMs of isStopped ? stopWaitsMs : lossWaitsMs) {
    await delay(waitMs);
    const loss = await pod.findLoss();
    if (loss) return loss;
  }
  const block = await pod.findBlock(cause);
  // The cluster may have been late to say why its own container ended.
  return block && ((await pod.findLoss()) ?? block);
}

function cutFailure(name: string, cause: unknown): SandboxFailure {
  const evidence = cause instanceof Error ? cause.message : String(cause);
  const todo = /server response: 403/.test(evidence)
    ? 'give this account the rights `get` and `create` on `pods/exec`'
    : 'what runs in it continues, and the call is made again';
  const text = `the connection to sandbox ${name} was cut; ${todo}`;
  return new SandboxFailure('SandboxUnavailable', text, { cause, evidence: evidence.slice(0, 500) });
}
