import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { Host } from '../activities/host/host.ts';
import { createReaper, type Reaper } from '../activities/host/reap.ts';
import { reaperId } from '../workflows/contracts/ids.ts';
import { ensureSchedule } from './schedules.ts';

/** The period of the reaper. */
const reapEveryMs = 60_000;

interface ReaperContext {
  readonly host: Host;
  readonly client: Client;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Removes what earlier rollouts left on a host, and has the reaper remove it from then on. */
export async function startReaper({ host, client, log }: ReaperContext, signal: AbortSignal): Promise<Reaper> {
  const reaper = createReaper(host, client);
  await reapAtStart(reaper, log, signal);
  await ensureSchedule(client, {
    scheduleId: reaperId(host.name),
    everyMs: reapEveryMs,
    workflowType: 'reaper',
    args: [{ host: host.name }],
    summary: `removes what dead rollouts left on ${host.name}`,
  });
  return reaper;
}

/** Reaps once. A sandbox that cannot be removed is logged and left to the reaper. */
async function reapAtStart(
  reaper: Pick<Reaper, 'reap'>,
  log: Pick<Logger, 'info' | 'warn'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    log.info(await reaper.reap(signal), 'removed what earlier rollouts left behind');
  } catch (error) {
    signal.throwIfAborted();
    log.warn(
      { error },
      'could not remove everything that earlier rollouts left behind; the reaper retries every minute. ' +
        'If it keeps failing, fix the cause that the error names, or remove the sandbox by hand',
    );
  }
}
