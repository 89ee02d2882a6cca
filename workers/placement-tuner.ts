import type { PlacementPoll, PlacementTurn } from '../activities/host/placement-turns.ts';
import { activityTuner, type Tuner } from './slot-tuner.ts';

/**
 * Makes a host poll a placement queue only when it is that queue's turn. The backlog stays on the server, where it costs
 * nothing and any host with free slots takes from it.
 */
export function placementTuner(turn: PlacementTurn): Tuner {
  return activityTuner({
    type: 'custom',
    reserveSlot: (_context, abortSignal) => turn.next(abortSignal),
    // It is for eager activities, which placement does not use.
    tryReserveSlot: () => null,
    markSlotUsed: ({ permit }) => (permit as PlacementPoll).placing(),
    releaseSlot: ({ permit }) => (permit as PlacementPoll).ended(),
  });
}
