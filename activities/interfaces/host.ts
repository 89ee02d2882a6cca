import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { ModelUse } from '../../workflows/contracts/cost.ts';
import type { Diff } from '../../workflows/contracts/diff.ts';
import type { Evaluated, EvaluationInPlace, EvaluationRequest } from '../../workflows/contracts/evaluation.ts';
import type { RolloutEpoch } from '../../workflows/contracts/ids.ts';
import type { NetworkUse } from '../../workflows/contracts/network.ts';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { PolicyRef } from '../../workflows/contracts/policy.ts';
import type { AgentOptions, RolloutResult, SessionSettings } from '../../workflows/contracts/rollout.ts';
import type { SandboxChoice, SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Snapshot } from '../../workflows/contracts/snapshot.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { BranchRule, TraceSummary } from '../../workflows/contracts/trace.ts';

/** Activities that any host may run, on a queue of their own. */
export interface ImageActivities {
  /** Pulls or builds the image of the task's sandboxes, if the host lacks it. Heartbeats report the progress. */
  prepareImage(input: Pick<ProvisionSandbox, 'task' | 'agent' | 'sandbox'>): Promise<{ readonly image: string }>;
}

/** Activities that any host with a free slot may run. */
export interface PlacementActivities {
  /** Takes a slot; or returns the result of a rollout that has a record, because the Temporal database was restored to before its end. */
  placeRollout(input: PlaceRollout): Promise<Placement | { readonly ended: RolloutResult }>;
}

export interface PlaceRollout {
  readonly epoch: RolloutEpoch;
  /** The image that some host has pulled or built for the rollout. Hosts that have it are preferred. */
  readonly image?: string;
  /** The kind of sandbox that the rollout asks for. Absent where the host chooses. */
  readonly kind?: SandboxKind;
}

export interface Placement {
  /** The stable name of the host; its queues follow from it. */
  readonly host: string;
  /** The fencing token that the host holds. */
  readonly token: string;
  /** Whether the host limits how many sandboxes all hosts create per second. */
  readonly limitsCreations?: true;
  /** Whether no other host can adopt the sandbox, because this one shares its journals with none. */
  readonly unadoptable?: true;
}

/** The activities on a task queue whose rate the server limits. */
export interface CreationActivities {
  /** Does nothing: being given out by the server is what allows the creation of a sandbox. */
  allowCreation(): Promise<void>;
}

/** Activities on the host where the rollout was placed. */
export interface HostActivities {
  provisionSandbox(input: ProvisionSandbox): Promise<Provisioned>;
  /** Starts the agent and waits for its end. */
  awaitAgent(input: AwaitAgent): Promise<AgentEnd>;
  /** Makes the activities that run here for the calling workflow ask the server at once whether they are cancelled. */
  deliverCancel(): Promise<void>;
  captureDiff(input: CaptureDiff): Promise<Diff>;
  /** Stores all that the agent changed in its sandbox, for tests that get that. */
  captureSnapshot(input: CaptureSnapshot): Promise<Snapshot>;
  /** Runs the tests in the agent's own sandbox, once the agent has ended. */
  evaluateInPlace(input: EvaluationInPlace): Promise<Evaluated>;
}

export interface ProvisionSandbox {
  readonly epoch: RolloutEpoch;
  readonly run: string;
  readonly task: Task;
  readonly agent: string;
  readonly sandbox: SandboxChoice;
  readonly lifetimeMs: number;
  /** The part of the lifetime for waits for an engine, in all steps of the task together. */
  readonly waitingMs: number;
}

export interface Provisioned {
  readonly sandbox: string;
  /** The version of the agent; absent if it is unknown. */
  readonly agentVersion?: string;
  readonly kind: SandboxKind;
  readonly baseCommit: string;
  /** The seconds that the stage ran, failed attempts included, without the wait for a place in the host's lane. */
  readonly seconds: number;
  /** The disk space in MB that is in use before the agent starts. */
  readonly diskBeforeMb: number;
  /** Whether the tests get everything that the agent changed in its sandbox, and not its diff alone. */
  readonly carriesChanges: boolean;
  /** The time for waits for an engine that the longest lifetime of such sandboxes leaves; absent if it leaves all. */
  readonly waitingMs?: number;
}

export interface StartAgent extends Pick<Provisioned, 'kind'> {
  readonly epoch: RolloutEpoch;
  readonly task: Task;
  readonly agent: string;
  readonly agentOptions?: AgentOptions;
  /** The host tools that the agent may call; absent without. */
  readonly hostTools?: readonly string[];
  readonly maxTurns: number;
  /** The context length of the model in tokens; null when it is unknown. */
  readonly contextLength: number | null;
}

export interface AwaitAgent extends Pick<Provisioned, 'kind' | 'diskBeforeMb'> {
  readonly epoch: RolloutEpoch;
  readonly agent: string;
  readonly timeoutMs: number;
  /** The longest time for which its clock stands still, since it waits for an engine. */
  readonly waitingMs: number;
  /** The time for which the agents of earlier steps have waited; absent if there were none. */
  readonly waitedBeforeMs?: number;
  /** The settings with which to start the agent first. */
  readonly start: Pick<StartAgent, 'task' | 'agentOptions' | 'hostTools' | 'maxTurns' | 'contextLength'>;
  /** The base commit of the diff, which the activity may capture once the agent has ended. */
  readonly baseCommit: string;
  /** Whether nothing after the diff needs the sandbox, so that the activity may release it. */
  readonly releases: boolean;
  /** The fencing token under which this host has adopted the sandbox; absent if it made it. */
  readonly adoptedAs?: string;
}

export interface AgentEnd {
  readonly stop: StopReason;
  readonly exitCode: number | null;
  readonly log: BlobRef;
  /** The answer of the task's reference solution, for an agent that applies it; absent without one. */
  readonly answer?: BlobRef;
  /** The use that it made of its network; absent if it had none. */
  readonly network?: NetworkUse;
  /** The time for which it has waited for an engine; absent if its time was not over, unless it worked at a step of a task. */
  readonly waitedMs?: number;
  /** The time that its start took. */
  readonly startSeconds: number;
  /** The diff, if the activity that waited for the agent's end has captured it, and the time that this took. */
  readonly diff?: Diff;
  readonly captureSeconds?: number;
  /** The time that the release of the sandbox took, if that activity has released it. */
  readonly releaseSeconds?: number;
}

export interface CaptureDiff {
  readonly epoch: RolloutEpoch;
  readonly kind: Provisioned['kind'];
  readonly task: Task;
  readonly baseCommit: string;
  /** The fencing token under which this host has adopted the sandbox; absent if it made it. */
  readonly adoptedAs?: string;
}

/** The capture of a snapshot, with what the agent was started with: the files of that are left out. */
export type CaptureSnapshot = Pick<CaptureDiff, 'epoch' | 'kind' | 'adoptedAs'> & Omit<StartAgent, 'epoch' | 'kind'>;

/** The activities around a session, which its host's own gateways have. */
export interface SessionActivities {
  openTrace(input: OpenTrace): Promise<OpenedTrace>;
  sealTrace(input: { readonly epoch: RolloutEpoch }): Promise<TraceSummary>;
  /** Closes a session without sealing it; returns what its model calls cost, or null if that is unknown. */
  closeTrace(input: { readonly epoch: RolloutEpoch }): Promise<ModelUse | null>;
  /**
   * Returns the smallest policy version over the tokens that the host's sessions have sampled so far, per group; null when
   * none was sampled.
   */
  readVersions(input: {
    readonly runKey: string;
    readonly groups: readonly number[];
  }): Promise<readonly (number | null)[]>;
}

/** The settings of the session to open. */
export interface OpenTrace extends SessionSettings {
  readonly branches: BranchRule;
  /** The task, if the agent may call host tools. */
  readonly task?: Pick<Task, 'id' | 'bundle'>;
  readonly epoch: RolloutEpoch;
  /** The seed of the session's sampling; the same on every activity attempt. */
  readonly seed: string;
  /** Milliseconds from now after which the session is dropped. */
  readonly lifetimeMs: number;
  readonly runKey: string | null;
  readonly group: number | null;
  /** The policy that samples, or the workflow id of its run; absent for the newest run's. */
  readonly policy?: PolicyRef | string | undefined;
  /** The name of the upstream model that answers instead of the policy. */
  readonly upstream?: string | undefined;
}

export interface OpenedTrace {
  readonly session: string;
  /** The context length of the engine in tokens; null when it does not answer. */
  readonly contextLength: number | null;
}

/** Activities that any host may run that shares its journals and drives the kind of sandbox. */
export interface AdoptionActivities {
  /** Takes a sandbox and its session over from a lost host. Repeatable. */
  adoptSandbox(input: AdoptSandbox): Promise<Adoption>;
}

export interface AdoptSandbox {
  readonly epoch: RolloutEpoch;
  readonly kind: SandboxKind;
  /** The lost host. */
  readonly from: string;
  /** The number of this adoption of the sandbox, from 1. */
  readonly adoption: number;
  /** Whether the agent calls the model, so that it has a session. */
  readonly usesModel: boolean;
  /** Whether the sandbox is still needed. */
  readonly needsSandbox: boolean;
}

/** The host that has adopted a sandbox, with the fencing token that it holds, or the reason why none could. */
export type Adoption = { readonly host: string; readonly token: string } | { readonly refused: string };

/** Clean-up on a host, on a queue of its own. */
export interface CleanUpActivities {
  /** Kills what runs, removes the sandbox and frees its slot. Repeatable. */
  releaseSandbox(input: { readonly epoch: RolloutEpoch }): Promise<{ readonly removed: boolean }>;
}

/** The reaper's part on a host. */
export interface ReaperActivities {
  /** Removes this stack's sandboxes on this host that are orphaned or too old, and images beyond their budget. */
  reapSandboxes(): Promise<{
    readonly removed: readonly string[];
    readonly images: readonly string[];
    /** Sandboxes that look orphaned for the first time. */
    readonly suspected: readonly string[];
  }>;
}

/** Activities that any host may run, because their sandbox is a fresh one. */
export interface EvaluationActivities {
  evaluate(input: EvaluationRequest): Promise<Evaluated>;
}
