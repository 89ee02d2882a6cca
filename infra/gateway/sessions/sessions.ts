import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { TraceSummary } from '../../../workflows/contracts/trace.ts';
import { attemptAll, throwTogether } from '../../attempt-all.ts';
import type { Store } from '../../store/store.ts';
import type { GatewayControl, Opened, OpenSession, SessionStatus } from '../control.ts';
import type { Peers } from '../http/peers.ts';
import { limits } from '../limits.ts';
import { Refusal } from '../refusal.ts';
import { createGroups, type Groups } from './groups.ts';
import type { Presence } from './presence.ts';
import { sealTrace } from './seal.ts';
import { createSession, type Session, type SessionDeps } from './session.ts';
import {
  createSessionFiles,
  type Elsewhere,
  type OpenedFile,
  type SealedSession,
  type SessionFiles,
} from './session-files.ts';

/**
 * All sessions of a journal directory, which several gateways may share. A session is loaded when somebody asks for it, by
 * the gateway that is asked, unless another one has it: then that one is asked. So a gateway that starts has nothing to read,
 * and when one dies any other goes on with its sessions. One that nobody uses leaves the memory until it is asked for again.
 */
export interface Sessions {
  open(session: OpenSession): Promise<Opened>;
  /** Null when it was never opened. */
  find(id: string): Promise<Found | null>;
  status(id: string): Promise<SessionStatus | null>;
  minVersions(groups: readonly string[]): Promise<readonly (number | null)[]>;
  seal(id: string): Promise<TraceSummary>;
  close(id: string): Promise<void>;
  /** Forgets expired sessions and those at rest, and removes files that nobody has written in a long time. */
  sweep(): Promise<void>;
  release(): Promise<void>;
}

export type Found = Session | SealedSession | Elsewhere;

export interface SessionsDeps extends SessionDeps {
  readonly store: Store;
  readonly journalDir: string;
  readonly presence: Presence;
  /** Of this gateway, among those on the same directory. */
  readonly name: string;
  readonly peers: Pick<Peers, 'controlOf'>;
  /** A session that was not used for so long leaves the memory. */
  readonly restMs: number;
}

export function createSessions(deps: SessionsDeps): Sessions {
  return new SessionTable(deps);
}

class SessionTable implements Sessions {
  readonly #deps: SessionsDeps;
  readonly #files: SessionFiles;
  readonly #groups: Groups;
  readonly #live = new Map<string, Promise<Session | Elsewhere | null>>();
  readonly #sealing = new Map<string, Promise<TraceSummary>>();
  #isClosing = false;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    this.#files = createSessionFiles(deps.journalDir, deps.name);
    this.#groups = createGroups(deps.journalDir);
  }

  async open(session: OpenSession): Promise<Opened> {
    const { upstream } = session;
    const model = upstream && (await this.#deps.upstreams.find(upstream.name));
    if ((await this.find(session.session)) === null) await this.#create(session);
    return { contextLength: model ? (model.contextLength ?? null) : await this.#deps.contextLength.look() };
  }

  async #create(session: OpenSession): Promise<void> {
    const id = session.session;
    if (session.group !== null) await this.#groups.add(session.group, id);
    await this.#once(id, async () => this.#sessionOf(await this.#files.create(session)));
  }

  async find(id: string): Promise<Found | null> {
    const loaded = (await this.#live.get(id)) ?? (await this.#files.findSealed(id)) ?? (await this.#load(id));
    // It may have been sealed in between.
    const found = loaded ?? (await this.#files.findSealed(id));
    if (found !== null && 'touch' in found) found.touch();
    return found;
  }

  async #load(id: string): Promise<Session | Elsewhere | null> {
    return this.#once(id, async () => {
      const loaded = await this.#files.load(id);
      return loaded && this.#sessionOf(loaded);
    });
  }

  #sessionOf(file: OpenedFile | Elsewhere): Session | Elsewhere {
    return 'holder' in file ? file : createSession(this.#deps, file.journal, file.opened, file.records);
  }

  /** One session object per id, whoever asks at the same time. */
  #once(id: string, make: () => Promise<Session | Elsewhere | null>): Promise<Session | Elsewhere | null> {
    const known = this.#live.get(id);
    if (known !== undefined) return known;
    if (this.#isClosing) throw new TemperFailure('GatewayUnavailable', 'the gateway restarts; ask again');
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
    throw new TemperFailure(
      'BlobMissing',
      `expected a journal of session ${id}, found none; was it opened by another stack?`,
    );
  }

  async status(id: string): Promise<SessionStatus | null> {
    const found = await this.find(id);
    if (found === null) return null;
    if ('holder' in found) return this.#peer(found).status(id);
    if (!('sealed' in found)) return found.status();
    const { summary, at } = found.sealed;
    return { state: 'sealed', turns: summary.turns, inFlight: 0, minVersion: summary.minVersion, lastActivityAt: at };
  }

  async minVersions(groups: readonly string[]): Promise<(number | null)[]> {
    return Promise.all(
      groups.map(async (group) => {
        const sessions = await this.#groups.sessionsOf(group);
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
    await found.close(new Refusal('session-closed', 'this session is sealed'));
    const summary = await sealTrace(found, this.#deps.store, await this.#deps.presence.absences());
    await this.#files.seal(id, summary);
    this.#live.delete(id);
    await found.release(0);
    return summary;
  }

  async close(id: string): Promise<void> {
    const found = await this.#get(id);
    if ('holder' in found) return this.#peer(found).close(id);
    if (!('sealed' in found)) await found.close(new Refusal('session-closed', 'this session is closed'));
  }

  #peer({ holder }: Elsewhere): GatewayControl {
    return this.#deps.peers.controlOf(holder);
  }

  async sweep(): Promise<void> {
    const now = Date.now();
    const keep = (id: string): boolean => this.#live.has(id) || this.#sealing.has(id);
    const steps = [() => this.#letIdleGo(now), () => this.#files.sweep(now - limits.retentionMs, keep)];
    await attemptAll(steps, 'a sweep of all sessions', (step) => step());
  }

  /** Where the disk is full one may not be able to write what it has to; the others go, and so do old files. */
  async #letIdleGo(now: number): Promise<void> {
    await attemptAll(this.#live, 'sessions to be let go', async ([id, loading]) => {
      const session = await loading.catch(() => null);
      if (session === null || 'holder' in session || this.#sealing.has(id)) return;
      if (now >= session.opened.expiresAt || session.isIdle(now - this.#deps.restMs)) await this.#letGo(id, session);
    });
  }

  /** Whoever asks for it meanwhile waits until its file is free, and loads it again. */
  async #letGo(id: string, session: Session): Promise<void> {
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
    // Not before: a session that is loaded again while its last turn is committed would have two writers of one journal.
    this.#live.clear();
    const failures = released.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    throwTogether('sessions to be let go', failures);
  }
}
