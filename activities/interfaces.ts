/** What workflows may ask for, by the worker that does it. They import it as types only; factories beside it implement it. */
import type { BlobRef } from '../workflows/contracts/blob.ts';
import type { Diff } from '../workflows/contracts/diff.ts';
import type { GroupReport, GroupSummary } from '../workflows/contracts/group.ts';
import type { RolloutEpoch } from '../workflows/contracts/ids.ts';
import type { StopReason } from '../workflows/contracts/outcome.ts';
import type { RewardPolicy } from '../workflows/contracts/resolution.ts';
import type { SandboxChoice, SandboxKind, SessionSettings } from '../workflows/contracts/rollout.ts';
import type { RunInput, StepResult, Training, WarmUp } from '../workflows/contracts/run.ts';
import type { ResolvedTask, Task } from '../workflows/contracts/task.ts';
import type { TraceSummary } from '../workflows/contracts/trace.ts';
import type { Verdict } from '../workflows/contracts/verdict.ts';
import type { RegradeActivities } from './regrade-interfaces.ts';
import type { SweepActivities } from './sweep-interfaces.ts';

export interface Placement {
  /** Stable name of the host; its queues follow from it. */
  readonly host: string;
}

/** The settings of the session to open. `branches` is absent when an older workflow asks: then all are trained. */
export interface OpenTrace extends SessionSettings {
  readonly attempt: RolloutEpoch;
  /** Milliseconds from now after which the session is dropped. */
  readonly lifetimeMs: number;
  readonly runKey: string | null;
  readonly group: number | null;
  /** The name of the upstream model that answers instead of the policy. */
  readonly upstream?: string | undefined;
}

export interface ProvisionSandbox {
  readonly attempt: RolloutEpoch;
  readonly run: string;
  readonly task: Task;
  readonly agent: string;
  readonly sandbox: SandboxChoice;
  readonly lifetimeMs: number;
}

export interface Provisioned {
  readonly sandbox: string;
  readonly kind: SandboxKind;
  readonly baseCommit: string;
  /** MB that the agent did not make; absent from older workers. */
  readonly diskBeforeMb?: number;
}

export interface OpenedTrace {
  readonly session: string;
  /** Of the engine, in tokens; null when it does not answer; absent from older workers. */
  readonly contextLength?: number | null;
}

export interface StartAgent extends Pick<Provisioned, 'kind'> {
  readonly attempt: RolloutEpoch;
  readonly task: Task;
  readonly agent: string;
  readonly maxTurns: number;
  /** Of the model, in tokens; null or absent: not known. */
  readonly contextLength?: number | null;
}

export interface AwaitAgent extends Pick<Provisioned, 'kind' | 'diskBeforeMb'> {
  readonly attempt: RolloutEpoch;
  readonly agent: string;
  readonly timeoutMs: number;
}

export interface AgentEnd {
  readonly stop: StopReason;
  readonly exitCode: number | null;
  readonly log: BlobRef;
}

export interface CaptureDiff {
  readonly attempt: RolloutEpoch;
  readonly kind: Provisioned['kind'];
  readonly task: Task;
  readonly baseCommit: string;
}

export interface Evaluate {
  readonly attempt: RolloutEpoch;
  readonly run: string;
  readonly task: Task;
  readonly sandbox: SandboxChoice;
  readonly diff: Diff;
  readonly timeoutMs: number;
  /** Takes a cached verdict where there is one, and keeps this one; absent: neither. */
  readonly reuseVerdict?: true;
}

/** What became of a group that did not report. */
export type GroupState = { readonly index: number } & (
  | { readonly state: 'running' }
  /** It ended, and its report is (now) a record of the run. */
  | { readonly state: 'ended'; readonly summary: GroupSummary }
);

export interface ControlActivities extends SweepActivities, RegradeActivities {
  /** Refuses also an agent, and an upstream model, that nobody knows. */
  resolveTask(input: {
    readonly address: string;
    readonly agent: string;
    readonly upstream?: string;
  }): Promise<ResolvedTask>;
  openTrace(input: OpenTrace): Promise<OpenedTrace>;
  sealTrace(input: { readonly attempt: RolloutEpoch }): Promise<TraceSummary>;
  closeTrace(input: { readonly attempt: RolloutEpoch }): Promise<void>;
  /** `policy` is absent from older workflows. */
  reward(input: { readonly verdict: Verdict; readonly policy?: RewardPolicy }): Promise<number>;
  /** Does anybody poll the host's queue? Tells a busy host from a lost one. */
  inspectHost(input: {
    readonly host: string;
  }): Promise<{ readonly alive: boolean; readonly lastSeenMs: number | null }>;

  /** Refuses a run that could never work: unknown agent, task set that can't be read. */
  checkRun(input: { readonly input: RunInput }): Promise<void>;
  /** The address of the task of a group: a function of set, seed, number and quarantine. `passedOver`: those before it. */
  chooseTask(input: {
    readonly tasks: string;
    readonly seed: number;
    readonly index: number;
  }): Promise<{ readonly address: string; readonly passedOver?: readonly string[] }>;
  recordGroup(report: GroupReport): Promise<void>;
  reconcileGroups(input: ReconcileGroups): Promise<readonly GroupState[]>;
  /** Smallest policy version over the tokens sampled so far, per group; null when none was sampled yet. */
  readVersions(input: {
    readonly runKey: string;
    readonly groups: readonly number[];
  }): Promise<readonly (number | null)[]>;
  gatherBatch(input: GatherBatch): Promise<GatheredBatch>;
  normalise(
    input: Normalise,
  ): Promise<{ readonly advantages: BlobRef; readonly metrics: Readonly<Record<string, number>> }>;
  recordStep(input: RecordStep): Promise<void>;
  /** Cancels groups whose run is closed, and rollouts whose sweep is; says which. */
  cancelOrphans(): Promise<{ readonly groups: readonly string[]; readonly rollouts?: readonly string[] }>;

  /** Triggers the schedules that go by this run's steps and are due after this one; says which. */
  triggerSchedules(input: {
    readonly run: string;
    readonly runKey: string;
    readonly step: number;
  }): Promise<{ readonly triggered: readonly string[] }>;
}

export interface ReconcileGroups {
  readonly run: string;
  readonly runKey: string;
  readonly rolloutsPerGroup: number;
  readonly groups: readonly { readonly index: number; readonly admittedVersion: number }[];
}

export interface GatherBatch {
  readonly runKey: string;
  readonly step: number;
  readonly groups: readonly number[];
  readonly training: Training;
}

export interface GatheredBatch {
  /** Pinned: the same bytes on any retry. Null when nothing can be trained on. */
  readonly batch: BlobRef | null;
  readonly trainedGroups: readonly number[];
  readonly zeroVarianceGroups: readonly number[];
  readonly rollouts: number;
  readonly tokens: number;
  readonly meanReward: number | null;
  readonly minVersion: number | null;
  /** What is to be known of the traces of the batch, summed up (forks, masked turns, ...); absent from older workers. */
  readonly metrics?: Readonly<Record<string, number>>;
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
  /** [number of the group, fate] of groups that ended without a step since the last one. */
  readonly dropped: readonly (readonly [number, string])[];
}

export interface ImageActivities {
  /** Pulls or builds what the task's sandboxes are made of, where the host lacks it; heartbeats say how far that is. */
  prepareImage(input: Pick<ProvisionSandbox, 'task' | 'agent' | 'sandbox'>): Promise<{ readonly image: string }>;
}

export interface PlacementActivities {
  placeRollout(input: { readonly attempt: RolloutEpoch; readonly lifetimeMs: number }): Promise<Placement>;
}

export interface HostActivities {
  provisionSandbox(input: ProvisionSandbox): Promise<Provisioned>;
  startAgent(input: StartAgent): Promise<{ readonly started: 'started' | 'already-started' }>;
  awaitAgent(input: AwaitAgent): Promise<AgentEnd>;
  captureDiff(input: CaptureDiff): Promise<Diff>;
}

export interface CleanUpActivities {
  /** Kills what runs, removes the sandbox, gives the place back. Repeatable. */
  releaseSandbox(input: { readonly attempt: RolloutEpoch }): Promise<{ readonly removed: boolean }>;
}

export interface ReaperActivities {
  /** Removes this stack's sandboxes on this host whose rollout is over or whose time is, and images beyond their budget. */
  reapSandboxes(): Promise<{ readonly removed: readonly string[]; readonly images?: readonly string[] }>;
}

export interface EvaluationActivities {
  evaluate(input: Evaluate): Promise<Verdict>;
}

export interface PrepareTrainer {
  readonly run: string;
  readonly runKey: string;
  readonly seed: number;
  readonly tasks: string;
  readonly agent: string;
  readonly training: Training;
  readonly warmUp: WarmUp | null;
}

export interface UpdatePolicy {
  readonly runKey: string;
  readonly step: number;
  /** Of the whole run: the learning rate's schedule depends on it. */
  readonly steps: number;
  readonly batch: BlobRef;
  readonly advantages: BlobRef;
  readonly training: Training;
}

export interface PolicyUpdate {
  /** The trainer's checkpoint of the new version. */
  readonly name: string;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SyncWeights {
  readonly runKey: string;
  readonly version: number;
  readonly training: Training;
}

/** What prepareTrainer's heartbeats say while it warms up. */
export interface WarmUpProgress {
  readonly warmUpStep: number;
  readonly of: number;
}

export interface TrainerActivities {
  /** Get-or-create: the run's model at version 0, after its warm-up. */
  prepareTrainer(input: PrepareTrainer): Promise<{ readonly metrics: Readonly<Record<string, number>> }>;
  update(input: UpdatePolicy): Promise<PolicyUpdate>;
  /** Publishes a version to every engine replica, and proves it. */
  syncWeights(input: SyncWeights): Promise<{ readonly replicas: number; readonly maxLogprobGap: number }>;
  /** Publishes the version to the replicas that came back without it, and proves it; says which. */
  restoreWeights(input: SyncWeights): Promise<{ readonly restored: readonly string[] }>;
}
