import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReaper } from '../../activities/host/reap.ts';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { bundleChanged, withoutHeartbeats } from '../helpers/temporal/changed-workflows.ts';
import type { HostStages } from '../helpers/temporal/workers.ts';
import { until } from '../helpers/until.ts';

const rolloutCount = 3;
const watchEveryMs = 100;
/** More than the clocks of two hosts may differ, so that the reaper takes a sandbox for expired from the start. */
const lifetimeMs = -3_600_000;
/** The state of `TimeoutType` in a history for a stage that no worker took in time. */
const scheduleToStart = 2;
/** A task whose tests run in the agent's own sandbox. */
const ownSandbox = {
  toml: '[environment]\ndocker_image = "temper-tasks:bookworm"\nmemory_mb = 512\nstorage_mb = 256\n[grading]\nsandbox = "same"\n',
  solve: 'echo right >/tmp/answer',
  test: '[ "$(cat /tmp/answer)" = right ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n',
};

it('waits in a queue that is longer than schedule-to-start, the limits of a release and the lifetime of a sandbox', async () => {
  // The options are those of production, except that a rollout asks for its host after seconds instead of minutes, and that a
  // stage needs no heartbeats while the test holds it.
  const workflowBundle = await bundleChanged('activity-options.ts', (source) =>
    withoutHeartbeats(source.replace("inspectAfter = '10m'", "inspectAfter = '1s'")),
  );
  const waited = {
    captureDiff: new Set<string>(),
    evaluateInPlace: new Set<string>(),
    releaseSandbox: new Set<string>(),
  };
  /** Resolves when every other rollout has waited for the stage for longer than it may without asking for its host. */
  const untilOthersWaited = async (stage: keyof typeof waited): Promise<void> => {
    await until(() => waited[stage].size >= rolloutCount - 1, 240_000);
  };
  let evaluating = 0;
  let evaluatingAtOnce = 0;
  const counted = async <Result>(evaluation: () => Promise<Result>): Promise<Result> => {
    evaluating += 1;
    evaluatingAtOnce = Math.max(evaluatingAtOnce, evaluating);
    return evaluation().finally(() => {
      evaluating -= 1;
    });
  };
  const stages = (real: HostStages): HostStages => ({
    ...real,
    evaluate: (input) => counted(() => real.evaluate(input)),
    evaluateInPlace: (input) =>
      counted(async () => {
        await untilOthersWaited('evaluateInPlace');
        return real.evaluateInPlace(input);
      }),
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
  const lanes = { lanes: 1, evaluations: 1, capturesAtOnce: false };
  const rollouts = await startRollouts((home) => ({
    workflowBundle,
    taskRoots: [join(home, 'tasks')],
    ...lanes,
    lostAfterMs: 180_000,
    stages,
  }));
  const reaper = createReaper(rollouts.host, rollouts.client);
  try {
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'same', ownSandbox);
    const tasks = [...Array.from({ length: rolloutCount }, () => task), 'generated:train/1/0'];
    const handles = await Promise.all(
      tasks.map((one, index) => rollouts.start(`waits-${index}`, { task: one, agent: 'oracle', sandbox: 'local' })),
    );
    let ended = false;
    const watch = async (): Promise<void> => {
      while (!ended) {
        for (const { workflowId } of handles) {
          for (const stage of await timedOutStages(workflowId)) {
            if (stage in waited) waited[stage as keyof typeof waited].add(workflowId);
          }
        }
        const { removed } = await reaper.reap(AbortSignal.timeout(240_000));
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
    assert.equal(evaluatingAtOnce, 1, 'tests in own and in fresh sandboxes share a lane');
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
