import { z } from 'zod';
import { createSessionResponse } from '../../kits/tinker-wire/index.ts';
import type { SessionRecord } from '../journal.ts';
import { failureOf, isTransient, parseReply, type TrainerConnection } from './connection.ts';

/** The SDK's own interval. SkyRL unloads a session's models after 300 s without a heartbeat. */
const heartbeatMs = 10_000;

const storedSession = z.object({
  url: z.string(),
  sessionId: z.string(),
  /** The number of models that the run has asked for, in all of its sessions. */
  models: z.number(),
});

/**
 * The session that keeps this client's models loaded. With a record it survives the process: a restarted trainer worker
 * continues with the models of the last one.
 */
export interface TrainerSession {
  id(signal?: AbortSignal): Promise<string>;
  /**
   * Returns a number that no model of the session has, whichever process asked for it: a server may take a second model with the
   * same number for a retry, and return the first one.
   */
  nextModel(): Promise<number>;
  /** Sends heartbeats for a session that another process opened. */
  resume(signal?: AbortSignal): Promise<void>;
  close(): void;
}

export function createSession(connection: TrainerConnection, record?: SessionRecord): TrainerSession {
  let current: Promise<string> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let unrecordedModels = 0;

  /** Returns whether the server knows the session. Throws if it may know it, and does not say so now. */
  const sendHeartbeat = async (sessionId: string, signal?: AbortSignal): Promise<boolean> => {
    const path = '/api/v1/session_heartbeat';
    const reply = await connection.post({ path, json: { session_id: sessionId } }, signal);
    // A busy server, or a proxy before it, has not lost the session, whose models would be unloaded without heartbeats.
    if (isTransient(reply) && reply.status !== 410) throw failureOf(reply, path);
    return reply.status === 200;
  };

  function startHeartbeats(sessionId: string): void {
    timer ??= setInterval(() => {
      sendHeartbeat(sessionId).then(
        (ok) => {
          if (!ok) close();
        },
        // The server may be away for a while: the next heartbeat tries again, and requests report the failure themselves.
        () => undefined,
      );
    }, heartbeatMs).unref();
  }

  async function open(signal?: AbortSignal): Promise<string> {
    const known = await knownSession(record, connection.url);
    if (known !== null && (await sendHeartbeat(known, signal))) return known;
    const json = { tags: ['temper'], user_metadata: {}, sdk_version: '0.25.0', type: 'create_session' };
    const reply = await connection.post({ path: '/api/v1/create_session', json }, signal);
    if (reply.status !== 200) throw failureOf(reply, '/api/v1/create_session');
    const { session_id } = parseReply(createSessionResponse, reply, 'create_session');
    await record?.update((before) => ({ url: connection.url, sessionId: session_id, models: modelsIn(before) }));
    return session_id;
  }

  function close(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
    current = null;
  }

  async function id(signal?: AbortSignal): Promise<string> {
    current ??= open(signal);
    try {
      const sessionId = await current;
      startHeartbeats(sessionId);
      return sessionId;
    } catch (error) {
      current = null;
      throw error;
    }
  }

  async function nextModel(): Promise<number> {
    if (record === undefined) return unrecordedModels++;
    let number = 0;
    await record.update((before) => {
      number = modelsIn(before);
      return { ...storedSession.parse(before), models: number + 1 };
    });
    return number;
  }

  return {
    id,
    nextModel,
    async resume(signal) {
      if (current === null && (await knownSession(record, connection.url)) !== null) await id(signal);
    },
    close,
  };
}

/** Returns the id of the recorded session with this server; null if there is none. */
async function knownSession(record: SessionRecord | undefined, url: string): Promise<string | null> {
  const parsed = storedSession.safeParse(await record?.find());
  return parsed.success && parsed.data.url === url ? parsed.data.sessionId : null;
}

function modelsIn(session: unknown): number {
  const parsed = storedSession.safeParse(session);
  return parsed.success ? parsed.data.models : 0;
}
