import { ApplicationFailure } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { ApplicationFailureCategory } from '@temporalio/common';
import { type RolloutEpoch, sessionId } from '../../workflows/contracts/ids.ts';
import type { Host } from './host.ts';

const shortestDelayMs = 2_000;
/** Average interval between the retries of all waiting rollouts: however many wait, the server dispatches four a second. */
const retryIntervalMs = 250;
const answerKeptMs = 5_000;

/**
 * Keeps slots of a host free for training. A placed rollout cannot be revoked, and priority only orders the waiting ones. So
 * while training runs, a sweep's rollout that would exceed the share returns to the server and is retried later.
 */
export interface SweepShare {
  /** Takes a slot for a rollout of a sweep. Throws a retryable failure with its delay when the share is used up. */
  take(epoch: RolloutEpoch, expiresAtMs: number): Promise<void>;
}

/** Creates the share that sweeps have of the slots while training runs: a fraction from 0 to 1, but at least one slot. */
export function createSweepShare(
  { name, slots }: Pick<Host, 'name' | 'slots'>,
  share: number,
  trainingRuns: () => Promise<boolean>,
): SweepShare {
  // Without any slot a sweep would wait for the end of all training.
  const most = Math.max(1, Math.floor(slots.capacity * share));
  /** The time by which each waiting rollout should have been retried. */
  const waiting = new Map<string, number>();

  function retryDelay(session: string, nowMs: number): number {
    for (const [one, dueAtMs] of waiting) if (dueAtMs < nowMs) waiting.delete(one);
    waiting.delete(session);
    const delayMs = Math.max(shortestDelayMs, (waiting.size + 1) * retryIntervalMs);
    waiting.set(session, nowMs + 2 * delayMs);
    return delayMs;
  }

  return {
    take: async (epoch, expiresAtMs) => {
      // Nothing is awaited between the count and the taking, so only one of two rollouts gets the share's last slot.
      if (slots.isTakenBy(epoch) || slots.takenBySweeps < most || !(await trainingRuns())) {
        waiting.delete(sessionId(epoch));
        return slots.take(epoch, { expiresAtMs, sweep: true });
      }
      const { takenBySweeps, capacity } = slots;
      throw ApplicationFailure.create({
        type: 'SweepShareTaken',
        message: `sweeps have ${takenBySweeps} of the ${capacity} slots of host ${name}, and their share is ${most} while training runs; the rollout waits for one of these (TEMPER_SWEEP_SHARE)`,
        category: ApplicationFailureCategory.BENIGN,
        nextRetryDelay: retryDelay(sessionId(epoch), Date.now()),
      });
    },
  };
}

/** Returns whether a training run is open, also a paused one, or a group started by hand. Answers are kept for 5 s. */
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
