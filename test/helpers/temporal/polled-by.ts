import { type PollClient, pollers } from '../../../infra/temporal/pollers.ts';

/** Whether a task queue is polled for activities by the worker with this process id. */
export async function isPolledBy(client: PollClient, queue: string, pid: number | undefined): Promise<boolean> {
  const identities = await pollers(client, queue, 'activity');
  return identities.some((identity) => identity.startsWith(`${pid}@`));
}
