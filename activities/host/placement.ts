import { ApplicationFailure, Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { isSweepPriority, placementQueue } from '../../workflows/contracts/queues.ts';
import { placementWaitMs } from '../../workflows/contracts/stage-limits.ts';
import { atBoundary } from '../boundary.ts';
import type { PlacementActivities } from '../interfaces/host.ts';
import { spread } from '../retry-delay.ts';
import type { Host } from './host.ts';
import type { Slots } from './slots.ts';
import type { SweepShare } from './sweep-share.ts';

/** The time that a poll for runs stays without a task before it counts as proof that no run waits. */
const emptyAfterMs = 200;
/**
 * The number of times that a rollout is left to other hosts because this one lacks its image, and the pauses between them. A
 * host that has the image and a free slot then takes it; if none does within a second, waiting would cost more than a pull.
 */
const declinesWithoutImage = 3;
const declineMs = 300;
/** The interval at which a sweep's turn is checked again if no slot changes: training may have ended. */
const checkAgainMs = 1_000;

/**
 * The turn of a queue to poll for rollouts. A poll takes no slot: if it did, the queues of runs and sweeps would keep slots
 * from each other while both are empty. So both may get a rollout for the same free slot, and the second rollout then waits
 * in `placeRollout` for the next slot.
 */
export interface PlacementTurn {
  /** Resolves when this queue may poll. */
  next(signal: AbortSignal): Promise<PlacementPoll>;
}

/** One poll of a placement queue, from its permission until its rollout is placed or it has ended without one. */
export interface PlacementPoll {
  /** Records that the poll brought a rollout, which is placed now. */
  placing(): void;
  ended(): void;
}

/** The turns of a host's two placement queues. Rollouts of runs come first wherever both wait. */
export interface PlacementTurns {
  readonly runs: PlacementTurn;
  readonly sweeps: PlacementTurn;
}

export function createPlacementTurns(slots: Slots, share: SweepShare): PlacementTurns {
  const runs = createPolls();
  const sweeps = createPolls();
  /** Whether a slot is free beside those of the rollouts that are placed now, and of the polls of this very queue. */
  const isFree = ({ open }: Polls): boolean => slots.isFree(runs.placing.size + sweeps.placing.size + open.size);
  const noRunWaits = (): boolean => [...runs.open.values()].some((sinceMs) => Date.now() - sinceMs >= emptyAfterMs);
  const sweepsMayPoll = async (): Promise<boolean> => {
    if (!isFree(sweeps) || !noRunWaits()) return false;
    // While the server is away the share is unknown, and polling would fail anyway.
    return share.allowsMore(sweeps.open.size + sweeps.placing.size).catch(() => false);
  };
  const changed = (atMostMs: number, signal: AbortSignal): Promise<void> =>
    slots.changed(AbortSignal.any([signal, AbortSignal.timeout(atMostMs)])).catch(() => signal.throwIfAborted());

  return {
    runs: {
      async next(signal) {
        while (!isFree(runs)) await changed(checkAgainMs, signal);
        return runs.start();
      },
    },
    sweeps: {
      async next(signal) {
        while (!(await sweepsMayPoll())) await changed(noRunWaits() ? checkAgainMs : emptyAfterMs, signal);
        return sweeps.start();
      },
    },
  };
}

/** The polls of one queue. */
interface Polls {
  /** The polls that have brought no rollout yet, with the times of their starts. */
  readonly open: ReadonlyMap<PlacementPoll, number>;
  /** The polls whose rollouts are placed now. */
  readonly placing: ReadonlySet<PlacementPoll>;
  start(): PlacementPoll;
}

function createPolls(): Polls {
  const open = new Map<PlacementPoll, number>();
  const placing = new Set<PlacementPoll>();
  return {
    open,
    placing,
    start() {
      const poll: PlacementPoll = {
        placing() {
          open.delete(poll);
          placing.add(poll);
        },
        ended() {
          open.delete(poll);
          placing.delete(poll);
        },
      };
      open.set(poll, Date.now());
      return poll;
    },
  };
}

/** The parts of a host that place rollouts. */
export type Placing = Pick<Host, 'name' | 'slots' | 'intake' | 'hasImage'>;

/** Takes slots for rollouts on this host. The tuner of the placement workers lets it run only while a slot is free. */
export function createPlacement({ name, slots, intake, hasImage }: Placing, share: SweepShare): PlacementActivities {
  return {
    placeRollout: ({ epoch, lifetimeMs, image }) =>
      atBoundary(async (signal) => {
        const { attempt, priority, taskQueue } = Context.current().info;
        if (image !== undefined && attempt <= declinesWithoutImage && !(await hasImage(image))) {
          throw retryLater(`host ${name} lacks the image ${image}, which another one has`, declineMs);
        }
        const sweep = isSweepPriority(priority);
        // Rollouts of sweeps that 0.4.0 started wait in the queue of runs.
        if (sweep && taskQueue === placementQueue && !(await share.allowsMore(0))) {
          throw retryLater(`the share of sweeps on host ${name} is used up (TEMPER_SWEEP_SHARE)`, 30_000);
        }
        const limit = AbortSignal.timeout(placementWaitMs);
        while (!slots.isTakenBy(epoch) && !slots.isFree(0)) {
          if (intake.closedBy !== null) throw retryLater(`host ${name} takes no new work: ${intake.closedBy}`, 1_000);
          await slots.changed(AbortSignal.any([signal, limit])).catch(() => signal.throwIfAborted());
          if (limit.aborted)
            throw retryLater(`host ${name} has no free slot: ${slots.taken} of ${slots.capacity} are taken`, 1_000);
        }
        slots.take(epoch, { expiresAtMs: Date.now() + lifetimeMs, sweep });
        return { host: name };
      }),
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
