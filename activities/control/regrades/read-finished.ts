import { isUnreadable, type RolloutRecords } from '../../../infra/store/rollout-records.ts';
import { blobAddress, packedAddress } from '../../../infra/tasks/address.ts';
import type { Tasks } from '../../../infra/tasks/tasks.ts';
import { withOfflineTests } from '../../../workflows/algorithms/offline-tests.ts';
import { failureKinds, TemperFailure } from '../../../workflows/contracts/failures.ts';
import type {
  FinishedEvaluation,
  FinishedRollout,
  FinishedStep,
  FinishedSteps,
} from '../../../workflows/contracts/regrade.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import type { RolloutRecord } from '../../../workflows/contracts/rollout-record.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import type { FinishedRef } from './list-finished.ts';

/** The length to which a reason is shortened, since a record with many rows is a value of history. */
const longestReason = 300;

export interface FinishedDependencies {
  readonly rollouts: Pick<RolloutRecords, 'read'>;
  readonly tasks: Pick<Tasks, 'resolve'>;
}

/**
 * Reads a rollout that has ended, with the inputs of its evaluation, from its record.
 * `addressNow` finds the task, by its id, that replaces the rollout's own.
 */
export async function readFinished(
  { rollouts, tasks }: FinishedDependencies,
  ref: FinishedRef,
  grader: string | null,
  addressNow: ((id: string) => Promise<string | null>) | null,
): Promise<FinishedRollout> {
  const record = await recordAt(rollouts, ref.record);
  if (typeof record === 'string') {
    const unknown = { rollout: ref.record, rolloutKey: '', task: '', before: null, kindBefore: null };
    return { ...unknown, graderBefore: null, leftOut: record.slice(0, longestReason) };
  }
  const { result, evaluation: had } = record;
  const { verdict, diff, bundle } = result;
  const known = {
    rollout: result.workflowId,
    rolloutKey: result.rollout,
    task: result.task,
    before: result.reward,
    kindBefore: verdict?.kind ?? null,
    graderBefore: verdict?.grader ?? null,
  };
  const why = whyLeftOut(result, grader);
  if (why !== null) return { ...known, leftOut: why };
  if (diff === null || bundle === null) return { ...known, leftOut: 'it has no diff' };
  if (had === undefined) return { ...known, leftOut: 'its record lacks the settings of its evaluation' };
  const now = addressNow === null ? blobAddress(bundle.digest) : await addressNow(result.task);
  if (now === null) return { ...known, leftOut: `the task set has no task with the id ${result.task}` };
  const task = await resolve(tasks, now);
  if (task instanceof TemperFailure)
    return { ...known, leftOut: `${task.type}: ${task.message}`.slice(0, longestReason) };
  if (task.gradedIn === 'same') return { ...known, leftOut: "its tests ran in the agent's own sandbox, which is gone" };
  const steps = finishedSteps(result, task, record.purpose);
  if (typeof steps === 'string') return { ...known, leftOut: steps };
  const { snapshot } = result;
  const works = steps?.worked ?? [{ snapshot }];
  const requiresSnapshot = task.gradedIn === 'snapshot' || task.gradedIn === 'artifacts';
  if (requiresSnapshot && works.some((work) => work.snapshot === undefined) && addressNow !== null) {
    return {
      ...known,
      leftOut: 'its tests now get files of its sandbox that were not kept: only the diff was',
    };
  }
  const { sandbox, rewardPolicy, offlineTests, evaluationTimeoutSec = null, address } = had;
  const networked = addressNow === null ? networkedAsBefore(verdict, task) : task;
  const evaluation: FinishedEvaluation = {
    diff,
    ...(result.answer !== undefined && { answer: result.answer }),
    ...(snapshot !== undefined && canUseSnapshot(task) && { snapshot }),
    ...(steps !== null && { steps }),
    sandbox,
    rewardPolicy,
    evaluationTimeoutSec,
    addresses: addressesOf(addressNow === null ? address : now, task, result.task),
    task: { ...(offlineTests ? withOfflineTests(networked) : networked), id: result.task },
  };
  const bundles = { before: bundle.digest, after: task.bundle.digest };
  return { ...known, ...(addressNow !== null && { bundles }), leftOut: null, evaluation };
}

/** Reads a record; returns a text if it is gone or can't be read, which fails the row of this rollout, not the regrade. */
async function recordAt(rollouts: Pick<RolloutRecords, 'read'>, key: string): Promise<RolloutRecord | string> {
  try {
    return (await rollouts.read(key)) ?? `the record ${key} was removed from the store`;
  } catch (error) {
    if (isUnreadable(error)) return error.message;
    throw error;
  }
}

/**
 * Returns the work at the steps of a rollout's task, null if it has none, and a text if they cannot be graded again. `task` may
 * have replaced the rollout's own.
 */
export function finishedSteps(
  { steps: rows = [], failure }: Pick<RolloutResult, 'steps' | 'failure'>,
  task: Pick<Task, 'steps' | 'gradedIn'>,
  purpose: RolloutRecord['purpose'] = 'training',
): FinishedSteps | string | null {
  const { steps: named = [] } = task;
  if (rows.length === 0 && named.length === 0) return null;
  if (failure !== null) return 'the tests of one of its steps could not run';
  const isSame = rows.length > 0 && rows.every(({ name }, index) => named[index]?.name === name);
  if (!isSame) return 'its task had other steps than it has now';
  const began = rows.filter(({ stop }) => stop !== null);
  const worked = began.flatMap(({ diff, snapshot }): FinishedStep[] => {
    if (diff === undefined) return [];
    return [{ diff, ...(snapshot !== undefined && canUseSnapshot(task) && { snapshot }) }];
  });
  if (worked.length < began.length) return 'the work at one of its steps was not kept';
  const restPrevented = rows.length > began.length && began.at(-1)?.verdict === 'graded';
  return { worked, restPrevented, purpose };
}

/**
 * Returns a task whose tests have a network if they had one before. What they have by default is not decided again: another cap of the
 * operator must not change what a verdict means. Without a verdict, the host of the evaluation decides.
 */
export function networkedAsBefore(verdict: Pick<Verdict, 'network'> | null, { testNetwork, ...task }: Task): Task {
  if (testNetwork === undefined) return task;
  const { optional, neededFor, ...given } = testNetwork;
  const isDefault = optional !== undefined || neededFor !== undefined;
  if (!isDefault || verdict === null) return { ...task, testNetwork };
  return verdict.network === undefined ? task : { ...task, testNetwork: given };
}

/** Whether the tests of a task can use a snapshot, if the rollout kept one. */
const canUseSnapshot = ({ gradedIn }: Pick<Task, 'gradedIn'>): boolean => gradedIn !== undefined && gradedIn !== 'same';

/** Returns the addresses of a task: as it was requested, if known, and as it may be packed, with its id and without. */
function addressesOf(asked: string | undefined, { bundle }: Task, id: string): readonly string[] {
  const packed = [packedAddress(bundle.digest, id), blobAddress(bundle.digest)];
  return [...new Set([...(asked === undefined ? [] : [asked]), ...packed])];
}

/**
 * Returns why a rollout is not graded again, or null if it is. The agent's work must count, which is so if the rollout was
 * scored, or if only its evaluation failed.
 */
function whyLeftOut({ outcome, failure, verdict }: RolloutResult, grader: string | null): string | null {
  const evaluated = outcome === 'scored' || failure?.stage === 'evaluate' || failure?.stage === 'reward';
  if (!evaluated) return `it ended as ${outcome}${failure === null ? '' : `, ${failure.type}`}`;
  const version = verdict?.grader ?? 'none';
  return grader === null || version === grader ? null : `its grader was ${version}`;
}

/** Resolves the task as the rollout had it. A task that no longer exists fails the row of this rollout, not the regrade. */
async function resolve(tasks: Pick<Tasks, 'resolve'>, address: string): Promise<Task | TemperFailure> {
  try {
    return await tasks.resolve(address);
  } catch (error) {
    if (error instanceof TemperFailure && !failureKinds[error.type].retryable) return error;
    throw error;
  }
}
