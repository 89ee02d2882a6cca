import { Context } from '@temporalio/activity';
import { endedGroup } from '../../../activities/control/groups.ts';
import type { ControlActivities } from '../../../activities/interfaces/control.ts';
import type { PlacementActivities } from '../../../activities/interfaces/host.ts';
import type { Records } from '../../../infra/store/records.ts';
import { findResult, type RolloutRecords } from '../../../infra/store/rollout-records.ts';
import type { StartRecords } from '../../../infra/store/start-records.ts';
import { following, placementOf, type Script } from './script.ts';

/** Creates the activities with which runs and groups start, without task sets. Their records are real. */
export function createScriptedStarts(
  script: Script,
  { records, starts }: { readonly records: Records; readonly starts: StartRecords },
): Pick<ControlActivities, 'checkRun' | 'chooseTask'> {
  return {
    async checkRun({ run: id, runKey: key, startedAt, input }) {
      await starts.write({ kind: 'trainingRun', id, key, startedAt, input });
      return null;
    },
    chooseTask: (input) =>
      following(script.choose, async () => ({
        address: `scripted:${input.index}`,
        ...(await endedGroup(records, input)),
      })),
  };
}

/** Creates the placement of rollouts on a host that has a slot for each. */
export const createScriptedPlacement = (script: Script, rollouts: RolloutRecords): PlacementActivities => ({
  async placeRollout({ epoch }) {
    const workflowId = Context.current().info.workflowExecution?.workflowId ?? '';
    const ended = await findResult(rollouts, { workflowId, rollout: epoch.rollout });
    return ended === null ? placementOf(script) : { ended };
  },
});
