import { log, setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { FailureRecord } from '../contracts/failures.ts';
import type { RolloutStatus } from '../contracts/messages.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { type Stage, stages } from '../contracts/rollout.ts';
import { searchAttributes, shownReward } from '../contracts/search-attributes.ts';
import { endingText, type Position, positionText } from './details.ts';
import { attributed } from './failure.ts';
import { createPause, type Pause } from './pause.ts';

/** Where a rollout is: what its status query, its current details and its search attributes say. */
export interface Progress {
  epoch: number;
  host: string | null;
  readonly pause: Pause;
  readonly seconds: Partial<Record<Stage, number>>;
  /** Runs one stage: waits while paused (clean-up does not), times it, attributes its failure. */
  stage<Result>(stage: Stage, work: () => Promise<Result>, whenPaused?: 'wait' | 'go on'): Promise<Result>;
  /** `account`: how it came to that, in a few words. */
  finish(outcome: Outcome, reward: number | null, failure: FailureRecord | null, account: string): void;
  status(): RolloutStatus;
}

export function createProgress(task: string, agent: string, run: string | null): Progress {
  let latest: Stage = stages[0];
  let end: Pick<RolloutStatus, 'outcome' | 'reward'> = { outcome: null, reward: null };
  const running = new Set<Stage>();
  const waiting = new Set<Stage>();
  const position = (): Position => {
    const { host, epoch, seconds, pause } = progress;
    return { task, agent, host, epoch, seconds, running, waiting, latest, pausedBecause: pause.because };
  };
  const show = (): void => {
    if (end.outcome === null) setCurrentDetails(positionText(position()));
  };
  const untilResumed = async (stage: Stage): Promise<void> => {
    if (progress.pause.because === null) return;
    waiting.add(stage);
    show();
    await progress.pause.untilResumed().finally(() => waiting.delete(stage));
  };

  describeOnce(task, agent, run);
  const progress: Progress = {
    epoch: 1,
    host: null,
    pause: createPause(show),
    seconds: {},
    async stage(stage, work, whenPaused = 'wait') {
      latest = stage;
      if (whenPaused === 'wait') await untilResumed(stage);
      running.add(stage);
      show();
      const startedAt = Date.now();
      try {
        return await work();
      } catch (error) {
        throw attributed(stage, error);
      } finally {
        running.delete(stage);
        progress.seconds[stage] = (progress.seconds[stage] ?? 0) + (Date.now() - startedAt) / 1000;
        show();
      }
    },
    finish(outcome, reward, failure, account) {
      end = { outcome, reward };
      setCurrentDetails(endingText(position(), { ...end, outcome, failure, account }));
      describeEnd(outcome, reward, failure);
    },
    status: () => ({
      stage: end.outcome === null ? ([...running].at(-1) ?? latest) : 'done',
      paused: progress.pause.because !== null,
      epoch: progress.epoch,
      host: progress.host,
      ...end,
    }),
  };
  return progress;
}

function describeEnd(outcome: Outcome, reward: number | null, failure: FailureRecord | null): void {
  upsertSearchAttributes([
    { key: searchAttributes.outcome, value: outcome },
    ...(reward === null ? [] : [shownReward(reward)]),
  ]);
  if (failure === null) return;
  upsertMemo({ failure: `${failure.type} at ${failure.stage ?? 'start'}: ${failure.message}` });
  log.warn('rollout ended without a score', { outcome, ...failure });
}

/** `tctl` and the UI set no search attributes: a rollout that was started by them sets its own. */
function describeOnce(task: string, agent: string, run: string | null): void {
  const present = new Set(
    workflowInfo()
      .typedSearchAttributes.getAll()
      .map(({ key }) => key.name),
  );
  if (present.has(searchAttributes.task.name)) return;
  upsertSearchAttributes([
    { key: searchAttributes.task, value: task },
    { key: searchAttributes.agent, value: agent },
    ...(run === null ? [] : [{ key: searchAttributes.run, value: run }]),
  ]);
}
