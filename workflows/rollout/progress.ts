import {
  condition,
  log,
  setCurrentDetails,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { RolloutStatus } from '../contracts/messages.ts';
import { type Stage, stages } from '../contracts/rollout.ts';
import { searchAttributes, shownReward, shownText } from '../contracts/search-attributes.ts';
import { endingText, type Position, positionText, type RolloutEnd } from './details.ts';
import { attributed, StageFailure } from './failure.ts';

/** The progress of a rollout, as its status query, its current details and its search attributes show it. */
export interface Progress {
  epoch: number;
  host: string | null;
  /** The version of the agent, once its sandbox is provisioned and if it is known. */
  agentVersion?: string | undefined;
  /** The number of times that another host adopted the sandbox. */
  adoptions: number;
  readonly notes: string[];
  readonly seconds: Partial<Record<Stage, number>>;
  /** Runs one stage: waits while the rollout is paused (clean-up does not), times it, and attributes its failure. */
  stage<Result>(stage: Stage, work: () => Promise<Result>, whenPaused?: 'wait' | 'continue'): Promise<Result>;
  /** Counts a part of a stage's time for another stage that shares its activity. */
  split(stage: Stage, other: Stage, seconds: number): void;
  /** Adds a remark on the rollout's course for people. */
  note(text: string): void;
  /** Pauses before the next stage, never within one. */
  pause(reason: string): void;
  resume(): void;
  finish(end: RolloutEnd): void;
  status(): RolloutStatus;
}

export function createProgress(task: string, agent: string, run: string | null): Progress {
  let latest: Stage = stages[0];
  let end: Pick<RolloutStatus, 'outcome' | 'reward'> = { outcome: null, reward: null };
  let pausedBecause: string | null = null;
  const running = new Set<Stage>();
  const waiting = new Set<Stage>();
  const position = (): Position => {
    const { host, epoch, seconds, notes } = progress;
    return { task, agent, host, epoch, seconds, running, waiting, latest, pausedBecause, notes };
  };
  const show = (): void => {
    if (end.outcome === null) setCurrentDetails(positionText(position()));
  };
  const setPause = (reason: string | null): void => {
    pausedBecause = reason;
    show();
  };
  const untilResumed = async (stage: Stage): Promise<void> => {
    if (pausedBecause === null) return;
    waiting.add(stage);
    show();
    await condition(() => pausedBecause === null).finally(() => waiting.delete(stage));
  };

  setSearchAttributes(task, agent, run);
  const progress: Progress = {
    epoch: 1,
    host: null,
    adoptions: 0,
    notes: [],
    seconds: {},
    async stage(stage, work, whenPaused = 'wait') {
      latest = stage;
      if (whenPaused === 'wait') await untilResumed(stage);
      running.add(stage);
      show();
      const startedAt = Date.now();
      let counted: Stage = stage;
      try {
        return await work();
      } catch (error) {
        const failure = attributed(stage, error);
        if (failure instanceof StageFailure) counted = failure.record.stage;
        throw failure;
      } finally {
        running.delete(stage);
        progress.seconds[counted] = (progress.seconds[counted] ?? 0) + (Date.now() - startedAt) / 1000;
        show();
      }
    },
    split(stage, other, seconds) {
      const whole = progress.seconds[stage] ?? 0;
      const part = Math.min(seconds, whole);
      progress.seconds[stage] = whole - part;
      progress.seconds[other] = (progress.seconds[other] ?? 0) + part;
    },
    note: (text) => void progress.notes.push(text),
    pause: setPause,
    resume: () => setPause(null),
    finish(ended) {
      end = { outcome: ended.outcome, reward: ended.reward };
      setCurrentDetails(endingText(position(), ended));
      showEnd(ended);
    },
    status: () => ({
      stage: end.outcome === null ? ([...running].at(-1) ?? latest) : 'done',
      paused: pausedBecause !== null,
      epoch: progress.epoch,
      host: progress.host,
      ...end,
    }),
  };
  return progress;
}

function showEnd({ outcome, reward, failure }: RolloutEnd): void {
  upsertSearchAttributes([
    { key: searchAttributes.outcome, value: outcome },
    ...(reward === null ? [] : [shownReward(reward)]),
  ]);
  if (failure === null) return;
  upsertMemo({ failure: `${failure.type} at ${failure.stage ?? 'start'}: ${failure.message}` });
  log.warn('rollout ended without a score', { outcome, ...failure });
}

/** Sets the search attributes of a rollout that was started by `tctl` or the UI, which set none. */
function setSearchAttributes(task: string, agent: string, run: string | null): void {
  const present = new Set(
    workflowInfo()
      .typedSearchAttributes.getAll()
      .map(({ key }) => key.name),
  );
  if (present.has(searchAttributes.task.name)) return;
  upsertSearchAttributes([
    shownText(searchAttributes.task, task),
    shownText(searchAttributes.agent, agent),
    ...(run === null ? [] : [{ key: searchAttributes.run, value: run }]),
  ]);
}
