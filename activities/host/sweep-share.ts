import type { Client } from '@temporalio/client';
import type { Slots } from './slots.ts';

const answerKeptMs = 5_000;

/**
 * The share of a host's slots that sweeps may have while training runs. A placed rollout cannot be revoked, so the rest is
 * kept free for training.
 */
export interface SweepShare {
  /** Whether a sweep may take another slot now, beside those taken and a number of slots that are being taken. */
  allowsMore(beingTaken: number): Promise<boolean>;
}

/** Creates the share that sweeps have of the slots while training runs: a fraction from 0 to 1, but at least one slot. */
export function createSweepShare(
  slots: Pick<Slots, 'capacity' | 'takenBySweeps'>,
  share: number,
  trainingRuns: () => Promise<boolean>,
): SweepShare {
  // Without any slot a sweep would wait for the end of all training.
  const most = Math.max(1, Math.floor(slots.capacity * share));
  return { allowsMore: async (beingTaken) => slots.takenBySweeps + beingTaken < most || !(await trainingRuns()) };
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
