import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { attemptAll } from '../../attempt-all.ts';
import { listenForSession, type SessionSocket } from '../session-socket.ts';
import { directoryNameOf, socketOf } from '../sockets.ts';

/**
 * The sockets of all open sessions: each session has a directory of its own, mounted into its sandbox, in which every gateway
 * listens. So an agent that floods its socket delays itself alone. A record beside the directory, which is not mounted, names
 * the session and the time at which it expires; the gateways read it when they start and every few seconds, and open and close
 * sockets accordingly, whichever of them opened or sealed the session.
 */
export interface SessionSockets {
  /** Opens a session's socket, until the session is removed or expires. Repeatable. Throws GatewayUnavailable. */
  open(session: string, expiresAt: number): Promise<void>;
  /** Removes a session's directory. */
  remove(session: string): Promise<void>;
  /** Opens the sockets of new sessions, closes those of removed ones, and removes expired ones. */
  synchronise(): Promise<void>;
  /** Returns the session on whose socket a connection arrived; null for one that arrived on the shared socket. */
  sessionOf(socket: Socket): string | null;
  /** Stops listening. The directories stay for the next gateway. */
  close(): Promise<void>;
}

export interface SessionSocketsDeps {
  /** The directory of the sessions' directories. */
  readonly root: string;
  /** The name of this gateway. */
  readonly name: string;
  readonly onConnection: (socket: Socket) => void;
  /** Called when a socket cannot accept connections, or cannot be opened again. */
  readonly onError: (session: string, error: unknown) => void;
}

const record = z.object({ session: z.string(), expiresAt: z.number() });
type SessionRecord = Readonly<z.output<typeof record>>;
const recordSuffix = '.json';

export function createSessionSockets(deps: SessionSocketsDeps): SessionSockets {
  return new SocketTable(deps);
}

/** Keeps the sockets by the names of their directories. */
class SocketTable implements SessionSockets {
  readonly #deps: SessionSocketsDeps;
  readonly #listening = new Map<string, Promise<SessionSocket>>();
  readonly #expiries = new Map<string, number>();
  readonly #sessions = new WeakMap<Socket, string>();
  #isClosing = false;

  constructor(deps: SessionSocketsDeps) {
    this.#deps = deps;
  }

  async open(session: string, expiresAt: number): Promise<void> {
    const key = directoryNameOf(session);
    await this.#makeRoot();
    await writeFile(this.#recordOf(key), JSON.stringify({ session, expiresAt }), { mode: 0o600 });
    await this.#listen(key, { session, expiresAt });
  }

  remove(session: string): Promise<void> {
    return this.#remove(directoryNameOf(session));
  }

  async synchronise(): Promise<void> {
    await this.#makeRoot();
    // Taken before the records are listed, since a session's record is written before its socket is opened.
    const open = [...this.#listening.keys()];
    const names = await readdir(this.#deps.root);
    const recorded = new Set(
      names.filter((file) => file.endsWith(recordSuffix)).map((file) => file.slice(0, -recordSuffix.length)),
    );
    const directories = names.filter((file) => !file.endsWith(recordSuffix));
    const ended = new Set([...open, ...directories].filter((key) => !recorded.has(key)));
    const added = [...recorded].filter((key) => !this.#listening.has(key));
    // A socket that cannot be removed or opened must not hinder those of other sessions.
    const steps = [
      () => attemptAll(ended, 'sockets of ended sessions', (key) => this.#removeUnrecorded(key)),
      () => attemptAll(added, 'sockets of sessions', (key) => this.#openRecorded(key)),
      () => this.#removeExpired(),
    ];
    await attemptAll(steps, 'the sockets of all sessions', (step) => step());
  }

  sessionOf(socket: Socket): string | null {
    return this.#sessions.get(socket) ?? null;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#listening.keys()].map((key) => this.#stop(key)));
  }

  /** Listens for a session once, however many calls ask for it. */
  async #listen(key: string, { session, expiresAt }: SessionRecord): Promise<void> {
    if (this.#isClosing) throw new TemperFailure('GatewayUnavailable', 'the gateway restarts; retry');
    this.#expiries.set(key, expiresAt);
    const opening = this.#listening.get(key) ?? this.#bind(key, session);
    this.#listening.set(key, opening);
    try {
      await opening;
    } catch (error) {
      if (this.#listening.get(key) === opening) this.#listening.delete(key);
      const reason = `cannot listen for session ${session} in ${this.#directoryOf(key)}: ${errorMessage(error)}`;
      throw new TemperFailure('GatewayUnavailable', reason, { cause: error });
    }
  }

  async #bind(key: string, session: string): Promise<SessionSocket> {
    const { name, onConnection, onError } = this.#deps;
    const directory = this.#directoryOf(key);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    return listenForSession({
      path: socketOf(directory, name),
      onConnection: (socket) => {
        this.#sessions.set(socket, session);
        onConnection(socket);
      },
      onError: (error) => onError(session, error),
    });
  }

  async #openRecorded(key: string): Promise<void> {
    const text = await this.#readRecord(key);
    // Another gateway is writing it, or has removed it.
    if (text === null || text === '') return;
    const recorded = record.parse(JSON.parse(text));
    if (Date.now() < recorded.expiresAt) await this.#listen(key, recorded);
    else await this.#remove(key);
  }

  /** Removes a directory that a gateway left behind when it was killed, unless its session was opened meanwhile. */
  async #removeUnrecorded(key: string): Promise<void> {
    if ((await this.#readRecord(key)) === null) await this.#remove(key);
  }

  async #removeExpired(): Promise<void> {
    const now = Date.now();
    const expired = [...this.#expiries].filter(([, expiresAt]) => now >= expiresAt);
    await attemptAll(expired, 'sockets of expired sessions', ([key]) => this.#remove(key));
  }

  async #remove(key: string): Promise<void> {
    // The record goes first: without it, no gateway opens the socket again.
    await rm(this.#recordOf(key), { force: true });
    await this.#stop(key);
    await rm(this.#directoryOf(key), { recursive: true, force: true });
  }

  async #stop(key: string): Promise<void> {
    const opened = this.#listening.get(key);
    this.#listening.delete(key);
    this.#expiries.delete(key);
    (await opened?.catch(() => null))?.close();
  }

  #makeRoot(): Promise<unknown> {
    // Users other than the stack's may enter a directory that is named to them, and list none.
    return mkdir(this.#deps.root, { recursive: true, mode: 0o711 });
  }

  #readRecord(key: string): Promise<string | null> {
    return readFile(this.#recordOf(key), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
  }

  #directoryOf(key: string): string {
    return join(this.#deps.root, key);
  }

  #recordOf(key: string): string {
    return join(this.#deps.root, `${key}${recordSuffix}`);
  }
}
