import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { explanationOf, type HttpReply } from '../http/client.ts';
import { invalid } from './checks.ts';
import type { Publication } from './engine.ts';
import { weightLabel } from './labels.ts';

/** The steps by which a kind of server loads whole weights from a directory. Each may be repeated at any point. */
export interface ReloadSteps {
  /** Whether the server already has these weights in service. Resumes it if an earlier publication stopped just before that. */
  isPublished(): Promise<boolean>;
  pause(): Promise<void>;
  load(): Promise<HttpReply>;
  /** Whether the server refused the weights before it changed anything, so that the old ones are intact. */
  isUntouched(reply: HttpReply): boolean;
  /** Names the loaded weights, and drops what was computed from the old ones. */
  complete(): Promise<void>;
  resume(): Promise<void>;
}

/**
 * Publishes whole weights. No server does this as a transaction: once `load` was sent, any failure leaves the server paused,
 * with requests waiting, until a publication succeeds. That is the failure EngineQuarantined.
 */
export async function publishByReload(url: string, publication: Publication, steps: ReloadSteps): Promise<void> {
  if (await steps.isPublished()) return;
  await steps.pause();
  const reply = await quarantineOnError(url, publication, () => steps.load());
  if (steps.isUntouched(reply)) {
    await steps.resume();
    const label = weightLabel(publication);
    throw invalid(`publish ${label}: expected weights at ${publication.path}, got: ${explanationOf(reply)}`);
  }
  if (reply.status !== 200) throw quarantined(url, publication, explanationOf(reply));
  await quarantineOnError(url, publication, async () => {
    await steps.complete();
    await steps.resume();
  });
}

async function quarantineOnError<T>(url: string, publication: Publication, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw quarantined(url, publication, errorMessage(cause), { cause });
  }
}

function quarantined(url: string, publication: Publication, reason: string, options?: ErrorOptions): TemperFailure {
  const message = `engine ${url}: publishing ${weightLabel(publication)} from ${publication.path} failed half-way: ${reason}; it stays paused until a publication succeeds`;
  return new TemperFailure('EngineQuarantined', message, options);
}

/** Refuses requests to an engine after a publication that failed half-way, until one succeeds. */
export function createQuarantine() {
  let reason: string | null = null;
  return {
    check(): void {
      if (reason !== null) throw new TemperFailure('EngineQuarantined', reason);
    },
    async during(publish: () => Promise<void>): Promise<void> {
      try {
        await publish();
        reason = null;
      } catch (error) {
        if (error instanceof TemperFailure && error.type === 'EngineQuarantined') reason = error.message;
        throw error;
      }
    },
  };
}
