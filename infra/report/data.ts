import type { FlagCounts, Trick } from '../../workflows/contracts/flags.ts';
import type { Count, Fate, Outcome } from '../../workflows/contracts/outcome.ts';
import type { RolloutResult, Stage } from '../../workflows/contracts/rollout.ts';
import type { SweepReport } from '../../workflows/contracts/sweep.ts';
import type { Branch, Trace, TraceCounts } from '../../workflows/contracts/trace.ts';

/** All that a report shows: plain numbers and texts, so that the page is a pure function of it. */
export interface ReportData {
  readonly run: RunFacts;
  readonly steps: readonly StepFacts[];
  readonly groups: Count<Fate>;
  readonly rollouts: Count<Outcome>;
  readonly stages: readonly StageTiming[];
  readonly failures: readonly FailureCount[];
  /** The most frequent first. */
  readonly flags: readonly FlagFacts[];
  /** Rollouts with any. */
  readonly flagged: FlagCounts;
  /** Mean reward on tasks that training never saw. */
  readonly heldOut: HeldOut | null;
  /** Evaluation sweeps of its policy versions, oldest first. */
  readonly sweeps: readonly SweepReport[];
  readonly story: Story | null;
  readonly wallSeconds: number | null;
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
  readonly meanReward: number | null;
  /** Mean reward of each group that came up for this step, with what became of it. */
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

/** Seconds over all rollouts that went through the stage. */
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

/** The rollouts that are flagged for one trick. */
export interface FlagFacts {
  readonly trick: Trick;
  readonly count: number;
  /** Of those that were scored; null when none was. */
  readonly meanReward: number | null;
  /** The one with the highest reward: where a trick paid, it shows there. */
  readonly workflowId: string;
}

/** One rollout with what its blobs hold. Texts come from an agent: hostile. */
export interface Story {
  readonly result: RolloutResult;
  readonly messages: readonly Message[];
  /** How the conversation branched and what of it is trained; null without a trace, or with one that does not say. */
  readonly branching: Branching | null;
  /** One for each of the first segments; none where the names of the tokens are not known. */
  readonly tokens: readonly TokenView[];
  /** Segments that are not shown. */
  readonly segmentsLeft: number;
  readonly patch: string | null;
  readonly testLog: string | null;
}

export interface Branching {
  readonly branches: readonly Branch[];
  readonly counts: TraceCounts;
  readonly maskedTurns: Trace['maskedTurns'];
}

/** A segment, token by token. */
export interface TokenView {
  readonly segment: number;
  readonly kind: string;
  /** In all, and those of them that this segment trains. */
  readonly length: number;
  readonly trained: number;
  /** Tokens at its start that an earlier segment has too; they are not repeated. */
  readonly shared: number;
  readonly tokens: readonly TokenFacts[];
  /** Tokens at its end that are left out here. */
  readonly left: number;
}

export interface TokenFacts {
  readonly text: string;
  /** `masked`: sampled and not trained. `skipped`: stands for many given ones. */
  readonly is: 'given' | 'sampled' | 'masked' | 'skipped';
  /** Natural log of its probability when it was sampled; null where it is not sampled. */
  readonly logprob: number | null;
}

export interface Message {
  readonly role: string;
  readonly text: string;
  /** Only on what the policy said. */
  readonly turn: TurnFacts | null;
}

export interface TurnFacts {
  readonly index: number;
  readonly tokens: number;
  readonly seconds: number;
  readonly versions: readonly number[];
  /** The upstream model that said it, where it was not the policy. */
  readonly model?: string;
}
