import { connect } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { type PollClient, pollers, type QueueKind } from '../../infra/temporal/pollers.ts';
import { readIdentity } from '../../infra/temporal/worker-identity.ts';

const pollMs = 100;
const tryTimeoutMs = 2_000;

/** Resolves once something accepts connections on a unix socket. */
export async function untilSocketAnswers(path: string, signal: AbortSignal): Promise<void> {
  while (!(await socketAnswers(path))) await sleep(pollMs, undefined, { signal });
}

/** Takes any certificate, which may name only the addresses by which other machines connect. No secret is sent. */
const agent = new Agent({ connect: { rejectUnauthorized: false } });

/** Resolves once a URL answers with a success. */
export async function untilHttpAnswers(url: string, signal: AbortSignal): Promise<void> {
  while (!(await httpAnswers(url))) await sleep(pollMs, undefined, { signal });
}

async function httpAnswers(url: string): Promise<boolean> {
  try {
    const { statusCode, body } = await request(url, { dispatcher: agent, signal: AbortSignal.timeout(tryTimeoutMs) });
    await body.dump();
    return statusCode >= 200 && statusCode < 300;
  } catch {
    return false; // not up yet; the caller decides what that means
  }
}

/** Whether something accepts connections on a unix socket. */
export async function socketAnswers(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(path);
    const answer = (up: boolean): void => {
      socket.destroy();
      resolve(up);
    };
    socket.setTimeout(tryTimeoutMs, () => answer(false));
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
  });
}

interface PolledQueue {
  readonly client: PollClient;
  readonly queue: string;
  readonly kind: QueueKind;
  readonly pid: number;
}

/** Resolves once the worker with this pid on this machine polls a task queue, which others may poll, too. */
export async function untilPolled({ client, queue, kind, pid }: PolledQueue, signal: AbortSignal): Promise<void> {
  const isOwn = (identity: string): boolean => {
    const worker = readIdentity(identity);
    // In containers of one image, the same part has the same pid everywhere.
    return worker?.pid === pid && worker.host === hostname();
  };
  while (!(await pollers(client, queue, kind)).some(isOwn)) await sleep(pollMs, undefined, { signal });
}
