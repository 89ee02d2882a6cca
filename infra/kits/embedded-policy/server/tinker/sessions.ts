import { randomUUID } from 'node:crypto';

/** The weights that a client samples from. */
export interface SamplingSession {
  /** The client's session. */
  readonly session: string;
  /** Null for the base model. */
  readonly directory: string | null;
  /** The checkpoint's tinker path; null for the base model and for weights that were saved without a name. */
  readonly path: string | null;
}

/** The sessions of clients, and their sampling sessions. */
export interface Sessions {
  /** Opens a session, and ends those without a heartbeat for an hour. */
  open(): string;
  /** Whether the session is open; renews it. */
  isOpen(session: string): boolean;
  end(session: string): void;
  openSampling(sampling: SamplingSession): string;
  sampling(id: string): SamplingSession | undefined;
}

/** The time without a heartbeat after which a session ends. Clients send one every ten seconds. */
const silentMs = 3_600_000;
/** The number of sampling sessions that are kept. The one that was not used for longest goes first. */
const keptSampling = 1024;

/** Creates the sessions; `onEnd` is called with each that ends. `now` returns milliseconds. */
export function createSessions(onEnd: (session: string) => void, now = () => performance.now()): Sessions {
  const aliveAtMs = new Map<string, number>();
  const samplings = new Map<string, SamplingSession>();

  function end(session: string): void {
    if (!aliveAtMs.delete(session)) return;
    for (const [id, sampling] of samplings) if (sampling.session === session) samplings.delete(id);
    onEnd(session);
  }

  return {
    open() {
      // Sessions grow in number only here, so this is the time to end some.
      for (const [session, at] of aliveAtMs) if (now() - at > silentMs) end(session);
      const session = `session_${randomUUID().slice(0, 8)}`;
      aliveAtMs.set(session, now());
      return session;
    },
    isOpen(session) {
      const isKnown = aliveAtMs.has(session);
      if (isKnown) aliveAtMs.set(session, now());
      return isKnown;
    },
    end,
    openSampling(sampling) {
      const id = `sampling_${randomUUID().slice(0, 8)}`;
      samplings.set(id, sampling);
      const [oldest] = samplings.keys();
      if (samplings.size > keptSampling && oldest !== undefined) samplings.delete(oldest);
      return id;
    },
    sampling(id) {
      const found = samplings.get(id);
      if (found === undefined) return undefined;
      samplings.delete(id);
      samplings.set(id, found);
      return found;
    },
  };
}
