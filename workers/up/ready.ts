import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { Agent, request } from 'undici';
import { pollers, type QueueKind } from '../../infra/temporal/pollers.ts';

const pollMs = 100;
const tryTimeoutMs = 2_000;

/** Resolves once something accepts connections on a unix socket. */
export async function untilSocketAnswers(path: string, signal: AbortSignal): Promise<void> {
  while (!(await socketAnswers(path))) await sleep(pollMs, undefined, { signal });
}

/** Takes any certificate: no secret is sent, and it may name only the addresses by which other machines connect. */
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

/**
 * Resolves once the worker with this pid polls a task queue. The worker's identity must contain its pid, as the SDK's
 * default does.
 */
export async function untilPolled(
  {
    client,
    queue,
    kind,
    pid,
  }: { readonly client: Client; readonly queue: string; readonly kind: QueueKind; readonly pid: number },
  signal: AbortSignal,
): Promise<void> {
  const namesPid = new RegExp(`\\b${pid}\\b`);
  while (!(await pollers(client, queue, kind)).some((identity) => namesPid.test(identity))) {
    await sleep(pollMs, undefined, { signal });
  }
}
