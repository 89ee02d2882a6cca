import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { GroupInput, GroupSummary } from '../../workflows/contracts/group.ts';
import type { OnFlag } from '../../workflows/contracts/on-flag.ts';
import type { Count, EqualRewards } from '../../workflows/contracts/outcome.ts';
import type {
  FinishedRollout,
  RegradeInput,
  RegradeReport,
  RegradeResult,
  RegradeRow,
} from '../../workflows/contracts/regrade.ts';
import type { RetentionResult } from '../../workflows/contracts/retention.ts';
import type { AgentOptions, RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RolloutRecord } from '../../workflows/contracts/rollout-record.ts';
import type { RunInput, StepResult, TasksLeftOut, Training } from '../../workflows/contracts/run.ts';
import type { RunEnd } from '../../workflows/contracts/start-record.ts';
import type { SweepInput, SweepPlan, SweepResult, SweepRow } from '../../workflows/contracts/sweep.ts';
import type { ResolvedTask } from '../../workflows/contracts/task.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';

/** The activities of the control worker. */
export interface ControlActivities extends RolloutActivities, RunActivities, SweepActivities, RegradeActivities {
  /** Reports whether a worker polls the host's queue, which distinguishes a busy host from a lost one. */
  inspectHost(input: {
    readonly host: string;
  }): Promise<{ readonly alive: boolean; readonly lastSeenMs: number | null }>;
  /** Lists the hosts whose workers poll. */
  liveHosts(): Promise<{ readonly hosts: readonly string[] }>;
  /** Cancels groups whose run is closed, and rollouts whose sweep is; returns their workflow ids. */
  cancelOrphans(): Promise<{ readonly groups: readonly string[]; readonly rollouts: readonly string[] }>;
  /** Pauses what is open while a disk is nearly full, and resumes it afterwards; returns workflow ids. */
  guardDisk(): Promise<{ readonly paused: readonly string[]; readonly resumed: readonly string[] }>;
  /** Removes what would grow for ever and nothing needs any more, for some minutes at most. */
  collectGarbage(): Promise<RetentionResult>;
}

/** The activities that a rollout asks of the control worker. */
export interface RolloutActivities {
  /** Looks a task up. Also refuses one that lacks a network, an unknown agent, its options, or an unknown upstream model. */
  resolveTask(input: {
    readonly address: string;
    readonly agent: string;
    readonly agentOptions?: AgentOptions;
    readonly hostTools?: readonly string[];
    readonly rewardPolicy?: string;
    readonly upstream?: string;
    readonly offlineTests?: true;
  }): Promise<ResolvedTask>;
  reward(input: { readonly verdict: Verdict; readonly policy: string }): Promise<number>;
  /**
   * Writes the record of a rollout, unless it has one. Returns the result in the record that came first if that differs: it is
   * the rollout's result then.
   */
  recordRollout(record: RolloutRecord): Promise<{ readonly adopted: RolloutResult | null }>;
}

/** The activities that a run, its groups and its steps ask of the control worker. */
export interface RunActivities {
  /**
   * Records the start of a run. Refuses one that can't work: an unknown agent, an unreadable task set, tasks whose agent could write its own reward, tasks
   * that lack a network. Returns those of these that the run leaves out; null if there are none.
   */
  checkRun(input: {
    readonly run: string;
    readonly runKey: string;
    readonly startedAt: number;
    readonly input: RunInput;
  }): Promise<TasksLeftOut | null>;
  /**
   * Returns the task address of a group: a function of set, seed, number, quarantine, and `leftOut`, the digest of a list of
   * tasks that are left out. `passedOver` holds quarantined tasks that were skipped for it. `ended` is the summary of a group that
   * has a report already, because the Temporal database was restored to before its end.
   */
  chooseTask(input: {
    readonly runKey: string;
    readonly onFlag?: OnFlag;
    readonly tasks: string;
    readonly seed: number;
    readonly index: number;
    readonly leftOut?: string;
  }): Promise<{ readonly address: string; readonly passedOver?: readonly string[]; readonly ended?: GroupSummary }>;
  /** Makes the report of a group whose rollouts have ended, from their records, and writes it once. */
  recordGroup(input: RecordGroup): Promise<GroupSummary>;
  /** Finds out what became of groups that did not report: by the records, then by the server. */
  reconcileGroups(input: ReconcileGroups): Promise<readonly GroupState[]>;
  gatherBatch(input: GatherBatch): Promise<GatheredBatch>;
  normalise(
    input: Normalise,
  ): Promise<{ readonly advantages: BlobRef; readonly metrics: Readonly<Record<string, number>> }>;
  recordStep(input: RecordStep): Promise<void>;
  recordRunEnd(input: { readonly runKey: string } & RunEnd): Promise<void>;
  /** Triggers the schedules that follow this run's steps and are due after this one; returns their ids. */
  triggerSchedules(input: {
    readonly run: string;
    readonly runKey: string;
    readonly step: number;
  }): Promise<{ readonly triggered: readonly string[] }>;
}

export interface RecordGroup extends Pick<GroupInput, 'task' | 'member' | 'onFlag'> {
  /** The workflow id of the group, its key and its start. */
  readonly group: string;
  readonly groupKey: string;
  readonly startedAt: number;
  /** The keys of its rollouts, in order. */
  readonly rollouts: readonly string[];
}

export interface ReconcileGroups {
  readonly run: string;
  readonly runKey: string;
  readonly rolloutsPerGroup: number;
  readonly onFlag?: OnFlag;
  readonly groups: readonly { readonly index: number; readonly admittedVersion: number }[];
}

/** The state of a group that did not report. */
export type GroupState = { readonly index: number } & (
  | { readonly state: 'running' }
  /** The group is closed, and some of its rollouts, which are cancelled, are not yet. */
  | { readonly state: 'ending' }
  /** The group ended, and its report is (now) a record of the run. */
  | { readonly state: 'ended'; readonly summary: GroupSummary }
);

export interface GatherBatch {
  readonly runKey: string;
  readonly step: number;
  /** The groups to train on, unless the step has a batch already. */
  readonly groups: readonly number[];
  /** The groups that ended without being trained since the last step; their rewards are counted, too. */
  readonly dropped: readonly number[];
  readonly training: Training;
  readonly onFlag?: OnFlag;
}

export interface GatheredBatch {
  /** The pinned batch: the same bytes on any retry. Null when there is nothing to train on. */
  readonly batch: BlobRef | null;
  readonly trainedGroups: readonly number[];
  readonly zeroVarianceGroups: readonly number[];
  readonly rollouts: number;
  readonly tokens: number;
  /** The mean over all scored rollouts of the step's groups. */
  readonly meanReward: number | null;
  /** The same with those of the dropped groups. */
  readonly scoredReward: number | null;
  /** The step's groups whose rewards are all equal. */
  readonly equalGroups: Count<EqualRewards>;
  readonly minVersion: number | null;
  /** Sums over the traces of the batch (forks, masked turns, …). */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface Normalise {
  readonly batch: BlobRef;
  readonly training: Training;
}

export interface RecordStep {
  readonly runKey: string;
  readonly result: StepResult;
  readonly trained: readonly number[];
  readonly zeroVariance: readonly number[];
  /** Pairs of group number and fate, of groups that ended without being trained since the last step. */
  readonly dropped: readonly (readonly [number, string])[];
}

/** The activities that a sweep asks of the control worker. */
export interface SweepActivities {
  /**
   * Records the start of a sweep and decides once what it evaluates. Refuses one that can't work: an unknown agent, task set or
   * policy version.
   */
  planSweep(input: {
    readonly sweep: string;
    readonly sweepKey: string;
    readonly startedAt: number;
    readonly input: SweepInput;
  }): Promise<SweepPlan>;
  /** Returns a page of the list of a sweep's tasks. */
  readAddresses(input: {
    readonly list: string;
    readonly from: number;
    readonly count: number;
  }): Promise<{ readonly addresses: readonly string[] }>;
  /** Returns the rollouts that have ended, as many as fit into history. With `more` the caller asks again at once. */
  endedRollouts(input: EndedRollouts): Promise<{ readonly rows: readonly SweepRow[]; readonly more: boolean }>;
  /** Writes one record of rows. */
  recordSweepRows(input: {
    readonly sweepKey: string;
    readonly chunk: number;
    readonly rows: readonly SweepRow[];
  }): Promise<void>;
  /** Reads the recorded rows and stores the report. */
  summariseSweep(input: SummariseSweep): Promise<SweepResult>;
}

export interface EndedRollouts {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly tasks: number;
  /** The digest of the list of task addresses. */
  readonly list: string;
  /** Pairs of attempt number and retry. */
  readonly rollouts: readonly (readonly [number, number])[];
}

export interface SummariseSweep {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly input: SweepInput;
  readonly plan: SweepPlan;
  /** The number of records of rows. */
  readonly chunks: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly endedEarly: string | null;
}

/** The activities that a regrade asks of the control worker. */
export interface RegradeActivities {
  /** Records the start of a regrade and lists the rollouts to grade again, in pages of its records; returns their number. */
  planRegrade(input: {
    /** The workflow id of the regrade. */
    readonly regrade: string;
    readonly startedAt: number;
    readonly regradeKey: string;
    readonly input: RegradeInput;
  }): Promise<{ readonly rollouts: number }>;
  /** Returns the rollout with a number in the list of finished rollouts, with the inputs of its evaluation. */
  readFinished(input: {
    readonly regradeKey: string;
    readonly number: number;
    readonly grader: string | null;
    /** Whether to take the task from the input's task set instead of the one that the rollout had. */
    readonly repaired?: true;
  }): Promise<FinishedRollout>;
  /** Writes what a regrade found beside the records of its rollouts, and as rows of its report. */
  recordRegrades(input: {
    /** The workflow id of the regrade. */
    readonly regrade: string;
    readonly regradeKey: string;
    readonly chunk: number;
    readonly rows: readonly RegradeRow[];
  }): Promise<void>;
  /** Reads the recorded rows and stores the report. */
  summariseRegrade(input: SummariseRegrade): Promise<RegradeResult>;
}

export interface SummariseRegrade extends Omit<RegradeReport, 'rows'> {
  readonly chunks: number;
}
