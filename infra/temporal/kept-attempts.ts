import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ActivityNotFoundError, type Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { errorMessage } from '../../workflows/contracts/error-message.ts';

/** The number of attempts that are returned at once. */
const atOnce = 16;
const tries = 10;
const betweenTriesMs = 1000;
/** The type of failure of an attempt that is returned. It is no failure of a stage, because another attempt follows. */
export const workerKilled = 'WorkerKilled';

/**
 * The activity attempts in progress of one worker process, each with its task token in a file. A process that is killed
 * leaves its files, and the next one returns those attempts to the server, which starts others at once instead of after a
 * heartbeat timeout. A token is good for its one attempt only, so nothing else can be ended by it.
 */
export interface KeptAttempts {
  /** Keeps an attempt until the returned function is called. */
  keep(taskToken: Uint8Array): Promise<() => Promise<void>>;
  /** Returns the attempts to the server that a process before this one has left. */
  returnLeft(client: Pick<Client, 'activity'>, signal: AbortSignal): Promise<Returned>;
}

export interface Returned {
  readonly returned: number;
  /** Attempts that had ended, or of which the server knows nothing. */
  readonly unknown: number;
  /** Attempts that could not be returned, which the server notices by their heartbeats; with the reason of one of them. */
  readonly failed: { readonly count: number; readonly reason: string } | null;
}

/** Opens the directory of one worker, and finds what a process before this one has left there. */
export async function openKeptAttempts(directory: string): Promise<KeptAttempts> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const left = (await readdir(directory)).map((name) => join(directory, name));
  return {
    async keep(taskToken) {
      const file = join(directory, randomUUID());
      await writeFile(file, taskToken);
      return () => rm(file, { force: true });
    },
    returnLeft: (client, signal) => returnLeft(client, left.splice(0), signal),
  };
}

async function returnLeft(client: Pick<Client, 'activity'>, files: string[], signal: AbortSignal): Promise<Returned> {
  const counts = { returned: 0, unknown: 0 };
  const reasons: string[] = [];
  const next = async (): Promise<void> => {
    for (let file = files.pop(); file !== undefined; file = files.pop()) {
      try {
        counts[await fail(client, await readFile(file), signal)] += 1;
        await rm(file, { force: true });
      } catch (error) {
        signal.throwIfAborted();
        reasons.push(errorMessage(error));
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  return { ...counts, failed: reasons[0] === undefined ? null : { count: reasons.length, reason: reasons[0] } };
}

/** Fails an attempt, so that the server makes another one. The server may be away for a moment. */
async function fail(
  client: Pick<Client, 'activity'>,
  taskToken: Uint8Array,
  signal: AbortSignal,
): Promise<'returned' | 'unknown'> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.activity.fail(
        taskToken,
        ApplicationFailure.create({
          type: workerKilled,
          message: 'the worker process that ran this attempt was killed; the one after it has returned the attempt',
          nextRetryDelay: '100ms',
        }),
      );
      return 'returned';
    } catch (error) {
      if (error instanceof ActivityNotFoundError) return 'unknown';
      if (attempt === tries) throw error;
      await sleep(betweenTriesMs, undefined, { signal });
    }
  }
}
