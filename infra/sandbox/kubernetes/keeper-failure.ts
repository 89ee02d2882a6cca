import { z } from 'zod';
import { SandboxFailure } from '../failure.ts';

/** The failure of a keeper that the cluster reaches: it was killed, does not answer, or sends what no keeper sends. */
export class KeeperFailure extends Error {
  override readonly name = 'KeeperFailure';
}

/** The failure of a keeper that has not begun in time, for which its node may have had no time. */
export class KeeperLate extends Error {
  override readonly name = 'KeeperLate';
}

/**
 * The end of a keeper's command, as the cluster reports it. `killed`: a signal ended it. `not-started`: the runtime could not start it in
 * the container. `ended`: it ended by itself, as a keeper does whose input was closed. `unclear`: the cluster does not know, as
 * when the runtime of the node has no time.
 */
export type KeeperEnding = 'killed' | 'not-started' | 'ended' | 'unclear';

/** The report of the cluster that the command of a keeper has ended. */
export class KeeperEnd extends Error {
  override readonly name = 'KeeperEnd';
  readonly ending: KeeperEnding;
  /** Whether the keeper was ready before, and this process had given it signs of life. */
  readonly hadServed: boolean;

  constructor(words: string, report: string, hadServed: boolean) {
    super(`the keeper ended: ${`${words} ${report}`.trim()}`);
    this.ending = endingOf(report);
    this.hadServed = hadServed;
  }
}

const successOrFailure = z.object({
  status: z.enum(['Success', 'Failure']),
  message: z.string().default(''),
  details: z
    .object({
      causes: z.array(z.object({ reason: z.string().optional(), message: z.string().optional() })).default([]),
    })
    .default({ causes: [] }),
});

/** The exit codes from this one on tell of a signal, or of a runtime that has given up. */
const firstOfSignals = 128;
/** The words of containerd about a command that the OCI runtime could not start in a container. */
const refusedByRuntime = /OCI runtime exec failed/;
/** The words of containerd and runc about a container that does not run, which the Pod's status explains. */
export const stoppedContainer = /CONTAINER_EXITED|in a stopped state|container not running/;
const outOfTime = /deadline exceeded|context canceled/i;

/** Returns how a keeper's command ended, by the status that the API server sends at its end. */
export function endingOf(report: string): KeeperEnding {
  const { data } = successOrFailure.safeParse(parsed(report));
  if (data === undefined) return 'unclear';
  if (data.status === 'Success') return 'ended';
  const code = data.details.causes.find(({ reason }) => reason === 'ExitCode')?.message;
  if (code !== undefined) return Number(code) >= firstOfSignals ? 'killed' : 'ended';
  const { message } = data;
  if (outOfTime.test(message) || stoppedContainer.test(message)) return 'unclear';
  return refusedByRuntime.test(message) ? 'not-started' : 'unclear';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether what runs in a sandbox may have caused an error of the connection to its keeper, which a command that the cluster starts
 * elsewhere may then prove. An agent that is not root can do no more than fill the memory. What an overloaded node answers is never
 * evidence: it leads to a retry, not to a score.
 */
export function mayBeDoneInside(error: unknown, root: boolean): boolean {
  if (!(error instanceof KeeperEnd)) return root;
  const { ending } = error;
  return ending === 'killed' || ending === 'not-started' || (root && ending === 'ended');
}

/**
 * The same for an error that follows such a one. Where a keeper was just ended, one that does not begin in time is evidence, too: it
 * shares memory and time with what has ended the other, and the command elsewhere shows that the node has time.
 */
export const mayBeDoneAgain = (error: unknown, root: boolean): boolean =>
  error instanceof KeeperLate || mayBeDoneInside(error, root);

/** Whether an error needs no further try to connect, since the keeper had worked until something in its sandbox stopped it. */
export const needsNoRetry = (error: unknown): boolean =>
  error instanceof KeeperFailure || (error instanceof KeeperEnd && error.hadServed && error.ending === 'killed');

/** Returns the failure of a command to a sandbox that another host has adopted. An agent that is root may have said so itself. */
export function heldElsewhere(token: string, root: boolean): SandboxFailure {
  const text = `this host may not command the sandbox any more, since ${token} has adopted it`;
  return root
    ? new SandboxFailure('SandboxLost', text, { loss: 'ended-inside' })
    : new SandboxFailure('HostFenced', text);
}
