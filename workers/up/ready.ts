import { connect } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { Agent, request } from 'undici';
import { processIdentity } from '../../infra/process/process-identity.mjs';

const pollMs = 100;
const tryTimeoutMs = 2_000;

/** Kinds of task queue, by their numbers in Temporal's API. */
const queueKinds = { workflow: 1, activity: 2 } as const;
export type QueueKind = keyof typeof queueKinds;

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

/** A poll stays open for a minute; a worker that has not polled for longer is gone. */
const pollerTtlMs = 75_000;

/**
 * Lists the identities of the workers that poll a task queue. The server remembers a poller for minutes after its end,
 * so workers of this machine are listed only while their process runs.
 */
export async function pollers(client: Client, queue: string, kind: QueueKind): Promise<string[]> {
  const { namespace } = client.options;
  const described = await client.connection.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: queueKinds[kind],
  });
  const recent = (described.pollers ?? []).filter(
    ({ lastAccessTime }) => Number(String(lastAccessTime?.seconds ?? 0)) * 1000 > Date.now() - pollerTtlMs,
  );
  return recent.map(({ identity }) => identity ?? '').filter(mayRun);
}

/** Whether the worker of an identity, `pid@host`, may still run: a process on another host can't be checked. */
function mayRun(identity: string): boolean {
  const [, pid, host] = /^(\d+)@(.*)$/.exec(identity) ?? [];
  return host !== hostname() || processIdentity(Number(pid)).startedAt !== undefined;
}
