import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReaper } from '../../activities/host/reap.ts';
import type { CleanUpActivities, HostActivities } from '../../activities/interfaces/host.ts';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { bundleChanged } from '../helpers/temporal/changed-workflows.ts';
import { until } from '../helpers/until.ts';

const rolloutCount = 3;
const watchEveryMs = 100;
/** More than the clocks of two hosts may differ, so that the reaper takes a sandbox for expired from the start. */
const lifetimeMs = -3_600_000;
/** The state of `TimeoutType` in a history for a stage that no worker took in time. */
const scheduleToStart = 2;

it('waits in a queue that is longer than schedule-to-start, the limits of a release and the lifetime of a sandbox', async () => {
  // The options are those of production, except that a rollout asks for its host after seconds instead of minutes.
  const workflowBundle = await bundleChanged('activity-options.ts', (source) =>
    source.replace("inspectAfter = '10m'", "inspectAfter = '1s'"),
  );
  const waited = { captureDiff: new Set<string>(), releaseSandbox: new Set<string>() };
  /** Resolves when every other rollout has waited for the stage for longer than it may without asking for its host. */
  const untilOthersWaited = async (stage: keyof typeof waited): Promise<void> => {
    await until(() => waited[stage].size >= rolloutCount - 1);
  };
  const stages = (real: HostActivities & CleanUpActivities): typeof real => ({
    ...real,
    provisionSandbox: (input) => real.provisionSandbox({ ...input, lifetimeMs }),
    captureDiff: async (input) => {
      await untilOthersWaited('captureDiff');
      return real.captureDiff(input);
    },
    releaseSandbox: async (input) => {
      await untilOthersWaited('releaseSandbox');
      return real.releaseSandbox(input);
    },
  });
  const lanes = { lanes: 1, capturesAtOnce: false };
  const rollouts = await startRollouts(() => ({ workflowBundle, ...lanes, lostAfterMs: 180_000, stages }));
  const reaper = createReaper(rollouts.host, rollouts.client);
  try {
    const handles = await Promise.all(
      Array.from({ length: rolloutCount }, (_, index) =>
        rollouts.start(`waits-${index}`, { task: 'generated:train/1/0', agent: 'oracle' }),
      ),
    );
    let ended = false;
    const watch = async (): Promise<void> => {
      while (!ended) {
        for (const { workflowId } of handles) {
          for (const stage of await timedOutStages(workflowId)) {
            if (stage === 'captureDiff' || stage === 'releaseSandbox') waited[stage].add(workflowId);
          }
        }
        const { removed } = await reaper.reap(AbortSignal.timeout(60_000));
        assert.deepEqual(removed, []);
        await sleep(watchEveryMs);
      }
    };
    const watching = watch();
    const results = await Promise.all(handles.map((handle) => handle.result())).finally(() => {
      ended = true;
    });
    await watching;
    for (const result of results) {
      assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', 1, 1], JSON.stringify(result));
    }
    assert.deepEqual(await rollouts.sandboxes(), []);
    assert.equal(rollouts.host.slots.taken, 0);
  } finally {
    await rollouts.close();
  }

  /** Lists the stages of a rollout that no worker took in time. */
  async function timedOutStages(workflowId: string): Promise<readonly string[]> {
    const { events } = await rollouts.client.workflow.getHandle(workflowId).fetchHistory();
    const stageOf = (scheduled: unknown): string =>
      events?.find(({ eventId }) => String(eventId) === String(scheduled))?.activityTaskScheduledEventAttributes
        ?.activityType?.name ?? '';
    return (events ?? []).flatMap(({ activityTaskTimedOutEventAttributes: timedOut }) =>
      timedOut?.failure?.timeoutFailureInfo?.timeoutType === scheduleToStart
        ? [stageOf(timedOut.scheduledEventId)]
        : [],
    );
  }
});
