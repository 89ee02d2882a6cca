import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { z } from 'zod';
import { modelUse } from '../../workflows/contracts/cost.ts';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { isFailureType, TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TraceSummary } from '../../workflows/contracts/trace.ts';
import { upstream } from '../../workflows/contracts/upstream.ts';
import { type GatewayControl, opened, serving, sessionStatus } from './control.ts';
import { orderFor } from './sockets.ts';

/** The limit of one call. Sealing waits for the store and for turns that are being written. */
const timeoutMs = 60_000;

/**
 * The waits after which gateways that refused a connection are tried again: one whose backlog is full, or that restarts,
 * accepts connections a moment later.
 */
const refusedDelaysMs = [25, 50, 100, 200, 400];
const refusals: ReadonlySet<string> = new Set(['EAGAIN', 'ECONNREFUSED']);

const healthPath = '/health';

const versions = z.array(z.int().nullable());

export interface GatewayControlClient extends GatewayControl {
  /** Whether any gateway answers. */
  health(signal?: AbortSignal): Promise<boolean>;
  end(): Promise<void>;
}

/** Creates a client of the gateways on this machine. A gateway that does not answer is skipped for the next one. */
export function createGatewayControl(controlSockets: readonly string[]): GatewayControlClient {
  const pools = controlSockets.map(poolTo);

  async function call(path: string, body: unknown, session: string, signal?: AbortSignal): Promise<unknown> {
    const { status, reply } = await sendToOne(path, body, session, signal);
    if (status === 200) return reply;
    const { type, message } = reply as { type?: string; message?: string };
    throw new TemperFailure(isFailureType(type) ? type : 'Internal', message ?? `the gateway answered ${status}`);
  }

  /** Sends a call to the first gateway that answers. When all refuse the connection, they are tried again a moment later. */
  async function sendToOne(path: string, body: unknown, session: string, signal?: AbortSignal): Promise<Answer> {
    const delaysMs = path === healthPath ? [] : refusedDelaysMs;
    for (let round = 0; ; round += 1) {
      const failures: unknown[] = [];
      for (const gateway of orderFor(session, pools)) {
        try {
          return await send(gateway, path, body, signal);
        } catch (error) {
          signal?.throwIfAborted();
          failures.push(error);
        }
      }
      const delayMs = delaysMs[round];
      if (delayMs === undefined || !failures.every(isRefused)) throw failures[0];
      await sleep(delayMs, undefined, signal === undefined ? {} : { signal });
    }
  }

  /** The session of calls that any gateway can answer. */
  const any = '';
  const address = (action: string, session: string): string => `/${action}/${encodeURIComponent(session)}`;
  return {
    open: async (session, signal) => opened.parse(await call('/open', session, session.session, signal)),
    adopt: async (adoption, signal) => z.boolean().parse(await call('/adopt', adoption, adoption.session, signal)),
    status: async (session, signal) =>
      sessionStatus.nullable().parse(await call(address('status', session), null, session, signal)),
    seal: async (session, signal) => (await call(address('seal', session), null, session, signal)) as TraceSummary,
    close: async (session, signal) =>
      modelUse.nullable().parse(await call(address('close', session), null, session, signal)),
    minVersions: async (groups, signal) => versions.parse(await call('/min-versions', groups, any, signal)),
    serving: async (policy, signal) => serving.parse(await call('/serving', policy, any, signal)),
    pinVersion: async (pin, signal) => z.boolean().parse(await call('/pin-version', pin, any, signal)),
    upstream: async (name, signal) => upstream.parse(await call(address('upstream', name), null, any, signal)),
    health: (signal) =>
      call(healthPath, null, any, signal).then(
        () => true,
        () => false,
      ),
    async end() {
      await Promise.all(pools.map(({ pool }) => pool.close()));
    },
  };
}

async function send({ pool, socketPath }: Gateway, path: string, body: unknown, signal?: AbortSignal): Promise<Answer> {
  try {
    const response = await pool.request({
      path,
      method: 'POST',
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
    return { status: response.statusCode, reply: await response.body.json() };
  } catch (error) {
    signal?.throwIfAborted();
    const reason = errorMessage(error);
    throw new TemperFailure(
      'GatewayUnavailable',
      `the gateway does not answer on ${socketPath}: ${reason}; is it running?`,
      { cause: error },
    );
  }
}

/** Whether the gateway has not received the call: its socket had no listener, or too many connections waited there. */
function isRefused(failure: unknown): boolean {
  const cause = failure instanceof Error ? failure.cause : undefined;
  return cause instanceof Error && 'code' in cause && refusals.has(String(cause.code));
}

function poolTo(socketPath: string): Gateway {
  const limits = { connections: 8, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  return { socketPath, pool: new Pool('http://gateway', { socketPath, ...limits }) };
}

interface Gateway {
  readonly pool: Pool;
  readonly socketPath: string;
}

interface Answer {
  readonly status: number;
  readonly reply: unknown;
}
