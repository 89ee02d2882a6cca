import type { FlagCounts, RisingTrick, Trick } from '../../workflows/contracts/flags.ts';
import type { Count, Fate, Outcome } from '../../workflows/contracts/outcome.ts';
import type { RolloutResult, Stage } from '../../workflows/contracts/rollout.ts';
import type { SweepReport } from '../../workflows/contracts/sweep.ts';
import type { Branch, Trace, TraceCounts } from '../../workflows/contracts/trace.ts';
import type { Costs } from './cost-table.ts';
import type { GroupFates } from './group-fates.ts';
import type { NetworkHost } from './network-hosts.ts';

/** All data of a report. The page is a pure function of it. */
export interface ReportData {
  readonly run: RunFacts;
  readonly steps: readonly StepFacts[];
  readonly groups: Count<Fate>;
  /** The groups that have a fate, by duration and by task. */
  readonly groupFates: GroupFates;
  readonly rollouts: Count<Outcome>;
  readonly stages: readonly StageTiming[];
  readonly failures: readonly FailureCount[];
  /** Suspected tricks, the most frequent first. */
  readonly flags: readonly FlagFacts[];
  /** Counts of the rollouts with any flag. */
  readonly flagged: FlagCounts;
  /** The tricks that the policy may be learning. */
  readonly rising: readonly RisingTrick[];
  /** The mean reward on held-out tasks, or null when it was not measured. */
  readonly heldOut: HeldOut | null;
  /** Evaluation sweeps of the run's policy versions, oldest first. */
  readonly sweeps: readonly SweepReport[];
  /** One rollout in detail. */
  readonly example: RolloutDetails | null;
  readonly wallSeconds: number | null;
  /** The cost of the run; null if it is unknown. */
  readonly costs: Costs | null;
}

export interface RunFacts {
  readonly id: string;
  readonly key: string;
  readonly tasks: string;
  readonly agent: string;
  readonly sandbox: string;
  readonly stepsAsked: number;
  readonly groupsPerStep: number;
  readonly rolloutsPerGroup: number;
  readonly maxStaleness: number;
  readonly seed: number;
}

export interface StepFacts {
  readonly step: number;
  /** Whether the step made an update. */
  readonly isUpdate: boolean;
  readonly meanReward: number | null;
  /** The groups that ended between the previous step and this one. */
  readonly groups: readonly GroupFacts[];
  readonly staleness: number;
  readonly rollouts: number;
  readonly tokens: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface GroupFacts {
  readonly index: number;
  readonly task: string;
  readonly fate: Fate;
  readonly rewards: readonly number[];
  readonly meanReward: number | null;
}

export interface HeldOut {
  readonly before: number | null;
  readonly after: number | null;
  readonly tasks: number;
}

/** Durations in seconds over all rollouts that passed through a stage. */
export interface StageTiming {
  readonly stage: Stage;
  readonly count: number;
  readonly median: number;
  readonly p90: number;
  readonly max: number;
}

export interface FailureCount {
  readonly type: string;
  readonly stage: string | null;
  readonly count: number;
  readonly example: string;
  readonly workflowId: string;
}

/** The rollouts that are flagged for a trick. */
export interface FlagFacts {
  readonly trick: Trick;
  readonly count: number;
  /** The mean over scored rollouts, or null when none was scored. */
  readonly meanReward: number | null;
  /** The rollout with the highest reward, in which a successful trick would be visible. */
  readonly workflowId: string;
}

/** A rollout with the contents of its blobs. The texts come from an agent and may be hostile. */
export interface RolloutDetails {
  readonly result: RolloutResult;
  readonly messages: readonly MessageView[];
  /** The branches of the conversation, or null when the trace does not contain them. */
  readonly branching: Branching | null;
  /** The tokens of the first segments. Empty when the names of the tokens are unknown. */
  readonly tokens: readonly TokenView[];
  /** The number of further segments that are not shown. */
  readonly segmentsLeft: number;
  /** The end of what the agent printed, in each step in which it crashed or a command that collects failed. */
  readonly agentLogEnd: string | null;
  readonly patch: string | null;
  readonly testLog: string | null;
  /** The hosts that the agent and its tests asked for. */
  readonly networkHosts: readonly NetworkHost[];
}

export interface Branching {
  readonly branches: readonly Branch[];
  readonly counts: TraceCounts;
  readonly maskedTurns: Trace['maskedTurns'];
}

/** The tokens of a segment. */
export interface TokenView {
  readonly segment: number;
  readonly kind: string;
  /** The number of all tokens. */
  readonly length: number;
  /** The number of trained tokens. */
  readonly trained: number;
  /** The number of tokens at the start that are not shown, since an earlier segment contains them. */
  readonly shared: number;
  readonly tokens: readonly TokenFacts[];
  /** The number of tokens at the end that are not shown. */
  readonly left: number;
}

export interface TokenFacts {
  readonly text: string;
  /** The kind of a token: `masked` was sampled but is not trained, `skipped` stands for many given tokens. */
  readonly is: 'given' | 'sampled' | 'masked' | 'skipped';
  /** The natural logarithm of the probability with which the token was sampled, or null when it was not sampled. */
  readonly logprob: number | null;
}

export interface MessageView {
  readonly role: string;
  readonly text: string;
  /** Facts about the turn, for messages of the policy. */
  readonly turn: TurnFacts | null;
}

export interface TurnFacts {
  readonly index: number;
  readonly tokens: number;
  readonly seconds: number;
  readonly versions: readonly number[];
  /** The upstream model, when the turn was not sampled from the policy. */
  readonly model?: string;
}
