import { ApplicationFailure, Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { findResult, type RolloutRecords } from '../../infra/store/rollout-records.ts';
import { isSweepPriority, placementQueueOf, shareOf } from '../../workflows/contracts/queues.ts';
import { placementWaitMs } from '../../workflows/contracts/stage-limits.ts';
import { atBoundary } from '../boundary.ts';
import type { PlacementActivities } from '../interfaces/host.ts';
import { spread } from '../retry-delay.ts';
import { belongsElsewhere } from './elsewhere.ts';
import type { Host } from './host.ts';
import type { PlacementTurns } from './placement-turns.ts';

/**
 * The number of times that a rollout is left to other hosts because this one lacks its image, and the pauses between them. A
 * host that has the image and a free slot then takes it; if none does within a second, waiting would cost more than a pull.
 */
const declinesWithoutImage = 3;
const declineMs = 300;

/** The longest pause before a rollout that asks for a kind that this host lacks may come here again, in seconds. */
const longestDeclineSec = 60;

/**
 * The time after which the reaper asks whether the rollout of a placed slot is still open. Provisioning takes the slot for the
 * sandbox's lifetime; a rollout that was terminated meanwhile never comes, and nothing else would release its slot.
 */
const unprovisionedMs = 60_000;

/** The interval at which a rollout checks again whether another one comes first for a free slot. */
const checkAgainMs = 200;

/** The parts of a host that place rollouts. */
export interface Placing
  extends Pick<Host, 'name' | 'fence' | 'acts' | 'slots' | 'intake' | 'hasImage' | 'sharesJournals'> {
  /** Whether this host limits how many sandboxes all hosts create per second. */
  readonly limitsCreations?: boolean;
  readonly rollouts: Pick<RolloutRecords, 'find'>;
  readonly turns: Pick<PlacementTurns, 'waitsFor' | 'leaveToOthers'>;
  readonly providers: Pick<Host['providers'], 'seen'>;
  readonly isOfferedElsewhere: Host['isOfferedElsewhere'];
}

/** Takes slots for rollouts on this host. The tuner of the placement workers lets it run only while a slot is free. */
export function createPlacement({
  name,
  fence,
  acts,
  slots,
  intake,
  hasImage,
  sharesJournals,
  limitsCreations = false,
  rollouts,
  turns,
  providers,
  isOfferedElsewhere,
}: Placing): PlacementActivities {
  return {
    placeRollout: ({ epoch, image, kind }) =>
      atBoundary(async (signal) => {
        const { attempt, priority, workflowExecution } = Context.current().info;
        const queue = placementQueueOf(priority);
        // Where no host offers the kind, one takes the rollout, and its provisioning fails with what is missing.
        if (kind !== undefined && (await belongsElsewhere({ providers, isOfferedElsewhere }, kind))) {
          const afterMs = Math.min(attempt, longestDeclineSec) * 1_000;
          turns.leaveToOthers(queue);
          throw retryLater(`host ${name} has no ${kind} sandboxes, which another one has`, afterMs);
        }
        if (image !== undefined && attempt <= declinesWithoutImage && !(await hasImage(image))) {
          throw retryLater(`host ${name} lacks the image ${image}, which another one has`, declineMs);
        }
        const limit = AbortSignal.timeout(placementWaitMs);
        const waiting = turns.waitsFor(queue);
        // Only a rollout that would get a slot is looked up, so that one which waits long costs one read.
        const findEnded = once(() =>
          findResult(rollouts, { workflowId: workflowExecution?.workflowId ?? '', rollout: epoch.rollout }),
        );
        try {
          while (!slots.isTakenBy(epoch)) {
            const ended = slots.isFree(0) ? await findEnded() : null;
            if (ended !== null) return { ended };
            if (slots.isFree(0) && (await waiting.isNext()) && slots.isFree(0)) break;
            if (intake.closedBy !== null) throw retryLater(`host ${name} takes no new work: ${intake.closedBy}`, 1_000);
            const again = AbortSignal.timeout(slots.isFree(0) ? checkAgainMs : placementWaitMs);
            await slots.changed(AbortSignal.any([signal, limit, again])).catch(() => signal.throwIfAborted());
            if (limit.aborted)
              throw retryLater(`host ${name} has no free slot: ${slots.taken} of ${slots.capacity} are taken`, 1_000);
          }
          signal.throwIfAborted();
          // A host that is cut off from the store may still reach the server, and would keep the rollout until it is back.
          const token = fence();
          if (token === null || !acts(token)) throw retryLater(`the lease of host ${name} ran out`, 1_000);
          const sweep = isSweepPriority(priority);
          slots.take(epoch, { expiresAtMs: Date.now() + unprovisionedMs, sweep, share: shareOf(priority) });
          return {
            host: name,
            token,
            ...(limitsCreations && { limitsCreations }),
            ...(!sharesJournals && { unadoptable: true }),
          };
        } finally {
          waiting.ended();
        }
      }),
  };
}

/** Makes work that is done once, however often it is asked for. */
function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}

function retryLater(reason: string, afterMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'NoFreeSlot',
    message: `${reason}; the rollout waits for the next free slot`,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: spread(afterMs),
  });
}
