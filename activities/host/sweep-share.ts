import { ApplicationFailure } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { ApplicationFailureCategory } from '@temporalio/common';
import { type RolloutEpoch, sessionId } from '../../workflows/contracts/ids.ts';
import type { Host } from './host.ts';

const fewestMs = 2_000;
/** Between two of all that wait here: however many do, the server has four of them a second to give out. */
const apartMs = 250;
const answerKeptMs = 5_000;

/**
 * Keeps the places of a host that training needs free of sweeps. What is placed can't be revoked and priority only orders
 * what waits, so while training runs a sweep's rollout that would exceed the share goes back to the server, and comes again.
 */
export interface SweepShare {
  /** Takes a place for a rollout of a sweep; throws, to be tried again in a while, when the share is taken. */
  take(attempt: RolloutEpoch, expiresAtMs: number): Promise<void>;
}

/** `share`: the part of the places, from 0 to 1, that sweeps may have while training runs. */
export function createSweepShare(
  { name, places }: Pick<Host, 'name' | 'places'>,
  share: number,
  trainingRuns: () => Promise<boolean>,
): SweepShare {
  /** One at least: with none a sweep would wait for the end of all training. */
  const most = Math.max(1, Math.floor(places.capacity * share));
  /** When each of those that wait here is due to have come again. */
  const waiting = new Map<string, number>();

  function comeAgainIn(attempt: string, nowMs: number): number {
    for (const [one, dueAtMs] of waiting) if (dueAtMs < nowMs) waiting.delete(one);
    waiting.delete(attempt);
    const delayMs = Math.max(fewestMs, (waiting.size + 1) * apartMs);
    waiting.set(attempt, nowMs + 2 * delayMs);
    return delayMs;
  }

  return {
    take: async (attempt, expiresAtMs) => {
      // Of two that see the last place of the share, one has it: nothing may come between the look and the taking.
      if (places.holds(attempt) || places.takenBySweeps < most || !(await trainingRuns())) {
        waiting.delete(sessionId(attempt));
        return places.take(attempt, { expiresAtMs, sweep: true });
      }
      const { takenBySweeps, capacity } = places;
      throw ApplicationFailure.create({
        type: 'SweepShareTaken',
        message: `sweeps have ${takenBySweeps} of the ${capacity} places of host ${name}, and ${most} is their share while training runs; it waits for one of these (TEMPER_SWEEP_SHARE)`,
        category: ApplicationFailureCategory.BENIGN,
        nextRetryDelay: comeAgainIn(sessionId(attempt), Date.now()),
      });
    },
  };
}

/** Runs, paused ones too, and groups that somebody started by hand. The answer is kept for some seconds. */
export function watchTraining(client: Pick<Client, 'workflow'>): () => Promise<boolean> {
  const query = 'WorkflowType IN ("trainingRun", "group") AND ExecutionStatus = "Running"';
  let runs = false;
  let askedAtMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (Date.now() - askedAtMs < answerKeptMs) return runs;
    runs = (await client.workflow.count(query)).count > 0;
    askedAtMs = Date.now();
    return runs;
  };
}
