import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { returnLeftAttempts } from '../infra/temporal/left-attempts.ts';
import { workerIdentity } from '../infra/temporal/worker-identity.ts';

/**
 * The pauses before the looks. A poll stays open at the server for a minute if it does not learn that the process is gone, and
 * may still be given an attempt.
 */
const pausesMs = [0, 75_000];
const tries = 10;
const betweenTriesMs = 5_000;

export interface ReturnContext {
  readonly client: Pick<Client, 'workflow' | 'activity'>;
  readonly host: string;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Returns to the server what killed processes of this host's worker have left, while the worker runs already. */
export async function returnAttempts(context: ReturnContext, signal: AbortSignal): Promise<void> {
  for (const pauseMs of pausesMs) {
    try {
      await sleep(pauseMs, undefined, { signal, ref: false });
      const returned = await look(context, signal);
      if (returned > 0) {
        context.log.info({ returned }, 'returned the activity attempts of a process that was killed');
      }
    } catch (error) {
      if (signal.aborted) return;
      context.log.warn({ error }, 'could not return activity attempts; the server notices by their heartbeats');
    }
  }
}

/** Looks once. The server may be away for a moment. */
async function look({ client, host }: ReturnContext, signal: AbortSignal): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await returnLeftAttempts(client, { host, identity: workerIdentity });
    } catch (error) {
      if (attempt === tries) throw error;
      await sleep(betweenTriesMs, undefined, { signal, ref: false });
    }
  }
}
