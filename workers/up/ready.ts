import { connect } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { request } from 'undici';
import { processIdentity } from '../../infra/process/process-identity.mjs';

const POLL_MS = 100;
const TRY_TIMEOUT_MS = 2_000;

export const queueKinds = { workflow: 1, activity: 2 } as const;

/** Resolves once something accepts connections on a unix socket. */
export async function untilSocketAnswers(path: string, signal: AbortSignal): Promise<void> {
  while (!(await socketAnswers(path))) await sleep(POLL_MS, undefined, { signal });
}

/** Resolves once a URL answers with a success. */
export async function untilHttpAnswers(url: string, signal: AbortSignal): Promise<void> {
  while (!(await httpAnswers(url))) await sleep(POLL_MS, undefined, { signal });
}

async function httpAnswers(url: string): Promise<boolean> {
  try {
    const { statusCode, body } = await request(url, { signal: AbortSignal.timeout(TRY_TIMEOUT_MS) });
    await body.dump();
    return statusCode >= 200 && statusCode < 300;
  } catch {
    return false; // not up: the caller decides what that means
  }
}

export async function socketAnswers(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(path);
    const answer = (up: boolean): void => {
      socket.destroy();
      resolve(up);
    };
    socket.setTimeout(TRY_TIMEOUT_MS, () => answer(false));
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
  });
}

/** Resolves once the worker of this pid polls a task queue. Its identity has to name the pid, as the SDK's default does. */
export async function untilPolled(
  client: Client,
  queue: string,
  kind: keyof typeof queueKinds,
  pid: number,
  signal: AbortSignal,
): Promise<void> {
  const ours = new RegExp(`\\b${pid}\\b`);
  while (!(await pollers(client, queue, kind)).some((identity) => ours.test(identity))) {
    await sleep(POLL_MS, undefined, { signal });
  }
}

/** A poll is held open for a minute; who has not polled for longer is gone. */
const POLLER_TTL_MS = 75_000;

/**
 * Identities of the workers that poll a task queue. The server remembers pollers for minutes after their end, so those of
 * this machine are checked by their process.
 */
export async function pollers(client: Client, queue: string, kind: keyof typeof queueKinds): Promise<string[]> {
  const { namespace } = client.options;
  const described = await client.connection.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: queueKinds[kind],
  });
  const recent = (described.pollers ?? []).filter(
    ({ lastAccessTime }) => Number(String(lastAccessTime?.seconds ?? 0)) * 1000 > Date.now() - POLLER_TTL_MS,
  );
  return recent.map(({ identity }) => identity ?? '').filter(mayRun);
}

/** `pid@host`, as the SDK names workers. Of other hosts nothing is known. */
function mayRun(identity: string): boolean {
  const [, pid, host] = /^(\d+)@(.*)$/.exec(identity) ?? [];
  return host !== hostname() || processIdentity(Number(pid)).startedAt !== undefined;
}
