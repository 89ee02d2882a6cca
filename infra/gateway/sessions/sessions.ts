import { modelUseOf, useOfTrace } from '../../../workflows/algorithms/cost.ts';
import type { ModelUse } from '../../../workflows/contracts/cost.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { TraceSummary } from '../../../workflows/contracts/trace.ts';
import { attemptAll, throwTogether } from '../../attempt-all.ts';
import type { Lease } from '../../hosts/lease.ts';
import type { Store } from '../../store/store.ts';
import type { GatewayControl, Opened, OpenSession, SessionStatus } from '../control.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';
import type { Peers } from '../peers.ts';
import { taskOf } from '../tools/task-files.ts';
import { requireLease } from './fence.ts';
import type { Presence } from './presence.ts';
import { sealTrace } from './seal.ts';
import { createSession, type Session, type SessionDeps } from './session.ts';
import {
  createSessionFiles,
  type OpenedFile,
  type RemoteSession,
  type SealedSession,
  type SessionFiles,
} from './session-files.ts';

/**
 * All sessions of a journal directory, which several gateways may share. A gateway loads a session at the first request for
 * it, unless another gateway has it: then the request is passed to that one. So a gateway has nothing to read when it starts,
 * and when one dies, any other takes over its sessions. An unused session is unloaded until the next request for it.
 */
export interface Sessions {
  open(session: OpenSession): Promise<Opened>;
  /** Takes a session over from a lost host that shares its journals; null if it has left none. */
  adopt(id: string, from: string): Promise<OpenSession | 'sealed' | null>;
  /** Finds a session; null when it was never opened. */
  find(id: string): Promise<Found | null>;
  status(id: string): Promise<SessionStatus | null>;
  minVersions(groups: readonly string[]): Promise<readonly (number | null)[]>;
  seal(id: string): Promise<TraceSummary>;
  /** Closes a session; returns what its turns cost, or null if that is unknown. */
  close(id: string): Promise<ModelUse | null>;
  /** Unloads expired and unused sessions, and removes files that have not been written for a long time. */
  cleanUp(): Promise<void>;
  /** Lets running turns end for a moment, then unloads all sessions. */
  release(): Promise<void>;
}

export type Found = Session | SealedSession | RemoteSession;

export interface SessionsDeps extends SessionDeps {
  readonly lease: Pick<Lease, 'now' | 'of'>;
  readonly store: Store;
  readonly journalDir: string;
  /** The directory that holds the journal directories of all hosts; null if this host shares none. */
  readonly sharedJournals: string | null;
  readonly presence: Presence;
  /** The name of this gateway, among those on the same directory. */
  readonly name: string;
  readonly peers: Pick<Peers, 'controlOf'>;
  /** The time after which an unused session is unloaded. */
  readonly idleMs: number;
}

export function createSessions(deps: SessionsDeps): Sessions {
  return new SessionTable(deps);
}

class SessionTable implements Sessions {
  readonly #deps: SessionsDeps;
  readonly #files: SessionFiles;
  readonly #live = new Map<string, Promise<Session | RemoteSession | null>>();
  readonly #sealing = new Map<string, Promise<TraceSummary>>();
  #isClosing = false;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    const { journalDir: dir, sharedJournals: shared, name } = deps;
    this.#files = createSessionFiles({ dir, shared, name });
  }

  async open(session: OpenSession): Promise<Opened> {
    const { upstream } = session;
    const fence = session.fence ?? this.#deps.lease.now().token ?? undefined;
    requireLease(this.#deps, { session: session.session, fence });
    await this.#deps.toolbox.require(session.hostTools ?? [], taskOf(session, this.#deps.taskFiles));
    const model = upstream && (await this.#deps.upstreams.find(upstream.name));
    const found = await this.find(session.session);
    if (found === null) await this.#create({ ...session, fence });
    else if ('opened' in found) requireLease(this.#deps, found.opened);
    if (model) return { contextLength: model.contextLength ?? null };
    const { contextLength } = await this.#deps.policies.of(session.policy);
    return { contextLength: await contextLength.look() };
  }

  async #create(session: OpenSession): Promise<void> {
    const id = session.session;
    if (session.group !== null) await this.#files.addToGroup(session.group, id);
    await this.#once(id, async () => this.#sessionOf(await this.#files.create(session)));
  }

  async adopt(id: string, from: string): Promise<OpenSession | 'sealed' | null> {
    const { token } = this.#deps.lease.now();
    if (token === null) return null;
    requireLease(this.#deps, { session: id, fence: token });
    const live = await this.#live.get(id);
    // This host may have been lost and have come back.
    if (live && 'opened' in live && this.#isVoid(live)) await this.#unload(id, live);
    return this.#files.adopt(id, from, token);
  }

  #isVoid({ opened }: Session): boolean {
    return this.#deps.lease.of(opened.fence) === 'fenced';
  }

  async find(id: string): Promise<Found | null> {
    const loaded = (await this.#live.get(id)) ?? (await this.#files.findSealed(id)) ?? (await this.#load(id));
    // Another call may have sealed it in between.
    const found = loaded ?? (await this.#files.findSealed(id));
    if (found !== null && 'touch' in found) found.touch();
    return found;
  }

  async #load(id: string): Promise<Session | RemoteSession | null> {
    return this.#once(id, async () => {
      const loaded = await this.#files.load(id);
      return loaded && this.#sessionOf(loaded);
    });
  }

  #sessionOf(file: OpenedFile | RemoteSession): Session | RemoteSession {
    return 'holder' in file ? file : createSession(this.#deps, file);
  }

  /** Makes one session object per id, however many calls need it at the same time. */
  #once(id: string, make: () => Promise<Session | RemoteSession | null>): Promise<Session | RemoteSession | null> {
    const known = this.#live.get(id);
    if (known !== undefined) return known;
    if (this.#isClosing) throw new TemperFailure('GatewayUnavailable', 'the gateway restarts; retry');
    const making = make();
    this.#live.set(id, making);
    const forget = (): void => {
      if (this.#live.get(id) === making) this.#live.delete(id);
    };
    making.then((session) => {
      if (session === null || 'holder' in session) forget();
    }, forget);
    return making;
  }

  async #get(id: string): Promise<Found> {
    const found = await this.find(id);
    if (found !== null) return found;
    throw new TemperFailure('BlobMissing', `session ${id} has no journal here; check whether another stack opened it`);
  }

  async status(id: string): Promise<SessionStatus | null> {
    const found = await this.find(id);
    if (found === null) return null;
    if ('holder' in found) return this.#peer(found).status(id);
    if (!('sealed' in found)) return found.status();
    const { summary, at } = found.sealed;
    const { turns, minVersion, waitedSeconds } = summary;
    return { state: 'sealed', turns, inFlight: 0, minVersion, lastActivityAt: at, waitedMs: waitedSeconds * 1000 };
  }

  async minVersions(groups: readonly string[]): Promise<(number | null)[]> {
    return Promise.all(
      groups.map(async (group) => {
        const sessions = await this.#files.sessionsOf(group);
        const states = await Promise.all(sessions.map((id) => this.status(id)));
        const versions = states.flatMap((state) => state?.minVersion ?? []);
        return versions.length === 0 ? null : Math.min(...versions);
      }),
    );
  }

  seal(id: string): Promise<TraceSummary> {
    const running = this.#sealing.get(id);
    if (running !== undefined) return running;
    const sealed = this.#seal(id).finally(() => this.#sealing.delete(id));
    this.#sealing.set(id, sealed);
    return sealed;
  }

  async #seal(id: string): Promise<TraceSummary> {
    const found = await this.#get(id);
    if ('sealed' in found) return found.sealed.summary;
    if ('holder' in found) return this.#peer(found).seal(id);
    requireLease(this.#deps, found.opened);
    await found.close(new GatewayError('session-closed', 'this session is sealed'));
    const summary = await sealTrace(found, this.#deps.store, await this.#deps.presence.absences());
    await this.#files.seal(found.opened, summary);
    this.#live.delete(id);
    await found.release(0);
    return summary;
  }

  async close(id: string): Promise<ModelUse | null> {
    const found = await this.#get(id);
    if ('holder' in found) return this.#peer(found).close(id);
    if ('sealed' in found) {
      return useOfTrace(found.sealed.summary);
    }
    if (this.#deps.lease.of(found.opened.fence) === 'fenced') return null;
    requireLease(this.#deps, found.opened);
    await found.close(new GatewayError('session-closed', 'this session is closed'));
    const { turns, cuts, waits } = found;
    const use = modelUseOf([...turns, ...cuts.last], waits.ms);
    return { ...use, sampledTokens: use.sampledTokens + cuts.replaced.tokens };
  }

  #peer({ holder }: RemoteSession): GatewayControl {
    return this.#deps.peers.controlOf(holder);
  }

  async cleanUp(): Promise<void> {
    const now = Date.now();
    const keep = (id: string): boolean => this.#live.has(id) || this.#sealing.has(id);
    const steps = [() => this.#unloadIdle(now), () => this.#files.cleanUp(now - limits.retentionMs, keep)];
    await attemptAll(steps, 'the clean-up of all sessions', (step) => step());
  }

  /** Unloads unused sessions, but for one that cannot write its last record to a full disk, and removes old files. */
  async #unloadIdle(now: number): Promise<void> {
    await attemptAll(this.#live, 'sessions to unload', async ([id, loading]) => {
      const session = await loading.catch(() => null);
      if (session === null || 'holder' in session || this.#sealing.has(id)) return;
      const isUnused = session.isIdle(now - this.#deps.idleMs) || this.#isVoid(session);
      if (session.isExpired() || isUnused) await this.#unload(id, session);
      else if (this.#deps.lease.of(session.opened.fence) === 'valid') await session.waits.write();
    });
  }

  /** Unloads a session. A request that arrives meanwhile waits until the session's file is free, and loads it again. */
  async #unload(id: string, session: Session): Promise<void> {
    const gone = session.release(0).then(() => null);
    const forgotten = gone.finally(() => this.#live.delete(id));
    this.#live.set(id, forgotten);
    await forgotten;
  }

  async release(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled(this.#sealing.values());
    const sessions = await Promise.allSettled(this.#live.values());
    const released = await Promise.allSettled(
      sessions.map(async (made) => {
        const session = made.status === 'fulfilled' ? made.value : null;
        if (session !== null && !('holder' in session)) await session.release(limits.drainMs);
      }),
    );
    // Only now: a session that is loaded again while it commits its last turn would give its journal two writers.
    this.#live.clear();
    const failures = released.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    throwTogether('sessions to unload', failures);
  }
}
