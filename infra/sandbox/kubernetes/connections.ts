import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { createLimiter } from '../limiter.ts';
import type { Cluster } from './client.ts';
import { type Connection, connect } from './connection.ts';
import type { KeptPod } from './pod.ts';

/** The most connections that this process opens at once: each starts a keeper, which costs the node of its Pod much CPU. */
export const opensAtOnce = 16;
/** The time after which an opening no longer keeps others waiting, as an agent that is root may keep its keeper from starting. */
const longestTurnMs = 10_000;
/** The tries of an opening for which the node's runtime has no time, and the pause after the first, which grows. */
const openAttempts = 3;
const firstPauseMs = 1_000;
/** The words of a runtime that has not started a command in time. */
const busyRuntime = /context deadline exceeded/;
const never = new AbortController().signal;

/** A Pod to connect to. */
export interface ConnectedPod extends KeptPod {
  readonly uid: string;
}

/** The connections of this process to the keepers of Pods, one for each Pod. */
export interface Connections {
  /** Returns the connection to a Pod. One that is broken is opened again. */
  to(pod: ConnectedPod): Promise<Connection>;
  /** Closes the connection to the Pod with a uid, if there is one. */
  close(uid: string): void;
  closeAll(): void;
}

/** The way in which connections are opened. */
interface OpenLimits {
  readonly connectTo: typeof connect;
  readonly turnMs: number;
  readonly pauseMs: number;
}

interface Known {
  readonly opened: Promise<Connection>;
  isClosed: boolean;
}

/**
 * Creates the connections to Pods of a cluster. Few are opened at once: a node that starts a keeper in each of hundreds of Pods at the
 * same moment starts none of them in time. The time limit of a connection begins with its turn.
 */
export function createConnections(
  open: () => Promise<Cluster>,
  { connectTo, turnMs, pauseMs }: OpenLimits = { connectTo: connect, turnMs: longestTurnMs, pauseMs: firstPauseMs },
): Connections {
  const turns = createLimiter(opensAtOnce);
  const all = new Map<string, Known>();

  function openInTurn(pod: KeptPod): Known {
    const opened = Promise.withResolvers<Connection>();
    const known: Known = { opened: opened.promise, isClosed: false };
    const openNow = async (): Promise<Connection> => {
      const cluster = await open();
      for (let attempt = 1; ; attempt += 1) {
        if (known.isClosed) throw new Error('the connection was closed by this process before it was open');
        try {
          return await connectTo(cluster, pod);
        } catch (error) {
          if (attempt === openAttempts || !busyRuntime.test(errorMessage(error))) throw error;
          await delay(attempt * pauseMs);
        }
      }
    };
    const takeTurn = async (): Promise<void> => {
      const opening = openNow();
      opened.resolve(opening);
      const isOver = opening.then(
        () => undefined,
        () => undefined,
      );
      await Promise.race([isOver, delay(turnMs, undefined, { ref: false })]);
    };
    turns.run(takeTurn, never).catch(opened.reject);
    return known;
  }

  async function connectionTo(pod: ConnectedPod): Promise<Connection> {
    const known = all.get(pod.uid);
    if (known === undefined) {
      const made = openInTurn(pod);
      all.set(pod.uid, made);
      return made.opened;
    }
    const found = await known.opened.catch(() => undefined);
    if (found !== undefined && !found.isOver()) return found;
    if (all.get(pod.uid) === known) all.delete(pod.uid);
    return connectionTo(pod);
  }

  function close(uid: string): void {
    const known = all.get(uid);
    all.delete(uid);
    if (known === undefined) return;
    known.isClosed = true;
    known.opened.then((one) => one.close()).catch(() => undefined);
  }

  return {
    to: connectionTo,
    close,
    closeAll: () => {
      for (const uid of [...all.keys()]) close(uid);
    },
  };
}
