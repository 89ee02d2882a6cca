import type { Ledger } from '../contracts/cost.ts';
import type { OnFlag } from '../contracts/on-flag.ts';
import { outcomes, zeroCount } from '../contracts/outcome.ts';
import {
  type LeftOut,
  leftOutKinds,
  type PassAtK,
  type SweepCost,
  type SweepPlan,
  type SweepReport,
  type SweepRow,
  type TaskScore,
} from '../contracts/sweep.ts';
import { clusteredMean } from './clustered-mean.ts';
import { addRollout } from './cost.ts';
import { countFlags } from './flags.ts';
import { meanOrNull } from './mean.ts';
import { actionOn, countActions, countedReward } from './on-flag.ts';
import { passAtK } from './pass-at-k.ts';
import { reaches } from './rounding.ts';

export interface SweepToSummarise extends Omit<SweepReport, 'result' | 'taskScores' | 'leftOut' | 'flagged'> {
  readonly pin: Pin;
  readonly endedEarly: string | null;
  readonly endedAt: number;
  /** The addresses of the tasks, in order. */
  readonly tasks: readonly string[];
  /** The rows of all rollouts, in any order. */
  readonly rows: readonly SweepRow[];
}

/** The version or model that a sweep evaluates. Only its rollouts are counted. */
export type Pin = Pick<SweepPlan, 'policyVersion' | 'upstream'>;

/** A task with the last rollouts of its attempts, and those of them that are counted. */
interface Tried {
  readonly address: string;
  readonly last: readonly SweepRow[];
  readonly counted: readonly SweepRow[];
  readonly passed: number;
}

/**
 * Summarises a sweep. The last rollout of each attempt decides: it is counted if it was scored and sampled only by the pinned
 * version or model, unless the sweep leaves it out for a flag. An end that `unscored` names is counted with a reward of 0. Attempts
 * that are not counted are in no denominator, and are listed with the reason.
 */
export function summariseSweep(options: SweepToSummarise): SweepReport {
  const { sweep, sweepKey, input, run, pool, startedAt, pin, endedEarly, tasks, rows, quarantined, lacking } = options;
  const { onFlag } = input;
  const last = lastRows(rows);
  const leftOut = last.flatMap((row) => {
    const why = whyLeftOut(row, pin, onFlag);
    return why === null ? [] : [{ ...row, why }];
  });
  const counted = last.filter((row) => whyLeftOut(row, pin, onFlag) === null);
  const rewardOf = (row: SweepRow): number => countedReward(row, onFlag) ?? 0;
  const passes = (row: SweepRow): boolean => reaches(rewardOf(row), input.passAt);
  const [lastOf, countedOf] = [Map.groupBy(last, taskOf), Map.groupBy(counted, taskOf)];
  const tried: Tried[] = tasks.map((address, index) => {
    const of = countedOf.get(index) ?? [];
    return { address, last: lastOf.get(index) ?? [], counted: of, passed: of.filter(passes).length };
  });
  const result: SweepReport['result'] = {
    tasks: tasks.length,
    outcomes: countBy(outcomes, last, ({ outcome }) => outcome),
    meanReward: meanOrNull(counted.map(rewardOf)),
    attempts: input.attempts,
    counted: counted.length,
    unscored: counted.filter(isUnscored).length,
    leftOut: countBy(leftOutKinds, leftOut, ({ why }) => why),
    retried: rows.length - last.length,
    ...pin,
    endedEarly,
    passAt1: clusteredMean(tried.map((task) => task.counted.map((row) => (passes(row) ? 1 : 0)))),
    reward: clusteredMean(tried.map((task) => task.counted.map(rewardOf))),
    passAtK: passTable(tried),
    cost: costOf(rows, (options.endedAt - startedAt) / 1000),
    flags: { ...countFlags(last.map(({ flags }) => flags)), ...countActions(last, onFlag) },
    tasksLeftOut: { quarantined: quarantined.length, network: lacking.length },
  };
  const flagged = last.flatMap(({ taskId, workflowId, reward, flags }) =>
    flags === undefined ? [] : [{ taskId, workflowId, reward, flags }],
  );
  return {
    sweep,
    sweepKey,
    input,
    run,
    ...(pool !== undefined && { pool }),
    startedAt,
    result,
    taskScores: tried.map((task) => scoreOf(task, rewardOf)),
    leftOut,
    flagged,
    quarantined,
    lacking,
  };
}

/** Returns why a rollout is not counted, or null if it is. */
export function whyLeftOut(row: SweepRow, pin: Pin, onFlag?: OnFlag): LeftOut | null {
  if (row.outcome !== 'scored' && !isUnscored(row)) return row.outcome;
  if (isOutsidePin(row, pin)) return 'other-version';
  return actionOn(row, onFlag)?.action === 'exclude' ? 'flagged' : null;
}

/** Whether the agent ended in a way that `unscored` names. In an evaluation its limits are part of the task, so it has failed. */
const isUnscored = ({ failure }: SweepRow): boolean => failure?.type === 'Excluded';

function isOutsidePin({ versions, model }: SweepRow, { policyVersion, upstream }: Pin): boolean {
  if (model !== undefined && upstream !== undefined) return model !== upstream.model;
  if (versions === null || policyVersion === null) return false;
  return versions.some((version) => version !== policyVersion);
}

/** Returns the last rollout of each attempt. */
function lastRows(rows: readonly SweepRow[]): SweepRow[] {
  const last = new Map<string, SweepRow>();
  for (const row of rows) {
    const key = `${row.task} ${row.attempt}`;
    if (row.retry >= (last.get(key)?.retry ?? 0)) last.set(key, row);
  }
  return [...last.values()].sort((a, b) => a.task - b.task || a.attempt - b.attempt);
}

/**
 * Computes pass@k for k = 1, 2, 4, … and the least number of counted attempts at a task, so that all are over the same tasks: the hard
 * ones may have lost most attempts, and without them each larger k would look better.
 */
function passTable(tried: readonly Tried[]): PassAtK[] {
  const tasks = tried.filter(({ counted }) => counted.length > 0);
  if (tasks.length === 0) return [];
  const most = tasks.reduce((least, { counted }) => Math.min(least, counted.length), Number.POSITIVE_INFINITY);
  const ks = new Set([most]);
  for (let k = 1; k < most; k *= 2) ks.add(k);
  return [...ks]
    .sort((a, b) => a - b)
    .flatMap((k) => {
      const estimate = clusteredMean(tasks.map(({ counted, passed }) => [passAtK(counted.length, passed, k) ?? 0]));
      return estimate === null ? [] : [{ k, ...estimate }];
    });
}

function scoreOf({ address, last, counted, passed }: Tried, rewardOf: (row: SweepRow) => number): TaskScore {
  const rewards = counted.map(rewardOf);
  return {
    // An attempt whose task could not be looked up has only its address.
    task: last.find(({ taskId }) => taskId !== address)?.taskId ?? address,
    address,
    counted: counted.length,
    passed,
    rewards,
    meanReward: meanOrNull(rewards),
    leftOut: last.length - counted.length,
    turns: sum(last, ({ turns }) => turns),
    sampledTokens: sum(last, ({ sampledTokens }) => sampledTokens),
    seconds: sum(last, ({ seconds }) => seconds),
  };
}

function costOf(rows: readonly SweepRow[], wallSeconds: number): SweepCost {
  return {
    rollouts: rows.length,
    turns: sum(rows, ({ turns }) => turns),
    sampledTokens: sum(rows, ({ sampledTokens }) => sampledTokens),
    promptTokens: sum(rows, ({ promptTokens }) => promptTokens),
    wallSeconds,
    rolloutSeconds: sum(rows, ({ seconds }) => seconds),
    sandboxSeconds: sum(rows, ({ sandboxSeconds }) => sandboxSeconds),
    ledger: rows.reduce<Ledger>((ledger, { outcome, cost }) => addRollout(ledger, outcome, cost), {}),
  };
}

function countBy<Kind extends string, Item>(
  kinds: readonly Kind[],
  items: readonly Item[],
  kindOf: (item: Item) => Kind,
): Record<Kind, number> {
  const counts = zeroCount(kinds);
  for (const item of items) counts[kindOf(item)] += 1;
  return counts;
}

const taskOf = ({ task }: SweepRow): number => task;
const sum = (rows: readonly SweepRow[], of: (row: SweepRow) => number): number =>
  rows.reduce((total, row) => total + of(row), 0);
