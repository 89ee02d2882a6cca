import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import { processIdentity } from '../process/process-identity.mjs';
import { readIdentity } from './worker-identity.ts';

/** Kinds of task queue, by their numbers in Temporal's API. */
export const queueKinds = { workflow: 1, activity: 2 } as const;
export type QueueKind = keyof typeof queueKinds;

/** The part of a client that tells which workers poll a task queue. */
export interface PollClient {
  readonly options: Pick<Client['options'], 'namespace'>;
  readonly connection: {
    readonly workflowService: {
      describeTaskQueue(of: object): Promise<{ readonly pollers?: readonly Polled[] | null }>;
    };
  };
}

interface Polled {
  readonly identity?: string | null;
  readonly lastAccessTime?: { readonly seconds?: { toString(): string } | null } | null;
}

/** The last poll of a worker. */
export interface Poll {
  readonly identity: string;
  /** The time of the poll by the server's clock, in whole seconds. */
  readonly atMs: number;
}

/** Lists the last polls of a task queue. The server remembers a worker for minutes after its end. */
export async function lastPolls(client: PollClient, queue: string, kind: QueueKind): Promise<readonly Poll[]> {
  const { pollers } = await client.connection.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: queueKinds[kind],
  });
  return (pollers ?? []).map(({ identity, lastAccessTime }) => ({
    identity: identity ?? '',
    atMs: Number(String(lastAccessTime?.seconds ?? 0)) * 1000,
  }));
}

/** Returns the names of the machines whose workers have polled a task queue in the last five minutes, which the server remembers. */
export async function pollingMachines(
  client: PollClient,
  queue: string,
  kind: QueueKind,
): Promise<ReadonlySet<string>> {
  const polls = await lastPolls(client, queue, kind);
  return new Set(polls.flatMap(({ identity }) => readIdentity(identity)?.host ?? []));
}

/** A poll stays open for a minute; a worker that has not polled for longer is gone. */
const pollerTtlMs = 75_000;

/** Lists the identities of the workers that poll a task queue, those of this machine only while their process runs. */
export async function pollers(client: PollClient, queue: string, kind: QueueKind): Promise<string[]> {
  const recent = (await lastPolls(client, queue, kind)).filter(({ atMs }) => atMs > Date.now() - pollerTtlMs);
  return recent.map(({ identity }) => identity).filter(mayRun);
}

/** Whether the worker of an identity may still run: a process on another host can't be checked. */
function mayRun(identity: string): boolean {
  const worker = readIdentity(identity);
  return worker?.host !== hostname() || processIdentity(worker.pid).startedAt !== undefined;
}
