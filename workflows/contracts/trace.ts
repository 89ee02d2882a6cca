import type { BlobRef } from './blob.ts';
import type { Upstream } from './upstream.ts';

/** Half-open range [start, end) of sampled tokens of one turn, all sampled by one policy version. */
export interface VersionSpan {
  readonly version: number;
  readonly start: number;
  readonly end: number;
}

export type FinishReason = 'stop' | 'length' | 'abort';

/** One model call of the agent, as the gateway saw it. `logprobs[i]` (natural log) belongs to `sampledIds[i]`. */
export interface Turn {
  readonly index: number;
  /** The turn whose reply this prompt continues; null: the prompt was rendered as a whole. */
  readonly parent: number | null;
  /** Key under which a client's retry is recognised as the same turn. */
  readonly requestKey: string;
  /** What the prompt adds to its parent's prompt and sampled tokens; without a parent the whole prompt. */
  readonly promptIds: readonly number[];
  /** Of the whole prompt as it was sent to the engine: its length, and the CRC-32 of its ids as text with commas between. */
  readonly promptLength: number;
  readonly promptChecksum: number;
  readonly sampledIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
  /** How often the engine broke it off and it was gone on with; absent: never. */
  readonly aborts?: number;
  /** An upstream model said it: there are no ids, logprobs and versions, and nothing of it can be trained. */
  readonly upstream?: UpstreamTurn;
  /** By what it was sampled, where the agent asked for something else than the run's; absent: by the run's. */
  readonly sampling?: TokenSampling;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** What an upstream model's server says of a turn. */
export interface UpstreamTurn {
  /** As it calls itself in the reply, which may be more exact than the name it was asked by. */
  readonly model: string;
  readonly sampledTokens: number;
}

/**
 * What a branch is for, told apart by what its requests hold:
 * - `main`: the agent's own line, and what can't be told apart from it
 * - `side`: titles, quota probes and the like; never trained
 * - `sub-agent`: the task that a call of another branch gave to it
 * - `compaction`: the line goes on behind a summary of itself, or writes one
 * - `fork`: the line goes on from a history that is no provable extension of it
 */
export type BranchKind = 'main' | 'side' | 'sub-agent' | 'compaction' | 'fork';

/** Which branches of an agent's rollouts are trained. */
export interface BranchRule {
  /** `final`: only the branch on which the agent's own line ended. `all`: all but side calls. */
  readonly train: 'final' | 'all';
  /** Of one trace; the branch on which the line ended is kept first. Null: no limit. */
  readonly maxSegments: number | null;
  /** A longer branch is cut behind its last turn that fits. Null: no limit. */
  readonly maxSegmentTokens: number | null;
}

export const trainAllBranches: BranchRule = { train: 'all', maxSegments: null, maxSegmentTokens: null };

/** One leaf of the tree of turns. */
export interface Branch {
  readonly index: number;
  readonly kind: BranchKind;
  /** Not of the agent's own line: a side call, a sub-agent, and what goes on from one. Traces of before don't say it of the latter. */
  readonly aside?: true;
  /** Its last reply called tools whose results never came: it was at work when the session ended. */
  readonly open?: true;
  readonly firstTurn: number;
  readonly lastTurn: number;
  readonly turns: number;
  readonly tokens: number;
  readonly finishReason: FinishReason;
  readonly aborts: number;
  /** The index of its segment; null when it has none. */
  readonly segment: number | null;
  /** Why it has no segment, or (`token-limit`) why that one is shorter. */
  readonly dropped: 'rule' | 'segment-limit' | 'token-limit' | 'nothing-to-train' | null;
}

/**
 * One root-to-leaf token sequence to train on. All arrays have the length of `tokens`.
 * `mask[i]` is 1 where `tokens[i]` was sampled and is trained; there `logprobs[i]` and `versions[i]` are those of its
 * sampling, elsewhere they are 0 and -1.
 */
export interface Segment {
  readonly index: number;
  readonly kind: BranchKind;
  readonly tokens: readonly number[];
  readonly mask: readonly (0 | 1)[];
  readonly logprobs: readonly number[];
  readonly versions: readonly number[];
  readonly finishReason: FinishReason;
  /** How often the engine broke off a turn of it; absent in older traces. */
  readonly aborts?: number;
  /** Turns on this segment whose tokens are not trained, with the reason. */
  readonly maskedTurns: readonly { readonly turn: number; readonly reason: string }[];
}

/** The sealed trace: a blob, write-once. */
export interface Trace {
  readonly session: string;
  readonly turns: readonly Turn[];
  readonly segments: readonly Segment[];
  /** All leaves, trained or not; absent in older traces. */
  readonly branches?: readonly Branch[];
  /** Absent in older traces. */
  readonly counts?: TraceCounts;
  /** Requests that were no provable extension of a branch. */
  readonly forks: number;
  /** Turns that no segment trains, with the reason. */
  readonly maskedTurns: readonly { readonly turn: number; readonly reason: string }[];
  /** Sampled tool calls that were no well-formed call of an offered tool, by what was wrong with them. */
  readonly faultyCalls: Readonly<Record<string, number>>;
  /** The conversation as text, for reports. */
  readonly transcript: readonly TranscriptEntry[];
}

/** What a turn's request brought along comes before what the turn said. */
export interface TranscriptEntry {
  readonly role: string;
  /** In older traces also the reasoning and the calls, as text. */
  readonly text: string;
  readonly reasoning?: string;
  readonly calls?: readonly TranscriptCall[];
  /** On a tool's result: the call that it answers. */
  readonly callId?: string;
  /** The turn that said it; absent on what a request brought along, and in older traces. */
  readonly turn?: number;
}

export interface TranscriptCall {
  readonly id: string;
  readonly name: string;
  /** As it was sampled: JSON text of an object, if the policy wrote one. */
  readonly arguments: string;
}

/** What is to be known of a trace before its tokens are trusted. */
export interface TraceCounts {
  readonly branches: Readonly<Partial<Record<BranchKind, number>>>;
  /** Branches that stayed on the main line since nothing tells what they are. */
  readonly unclear: number;
  /** Branches that the rule or its limits left without a segment. */
  readonly dropped: number;
  /** Sampled tokens that nothing is wrong with and that no segment trains. */
  readonly droppedTokens: number;
  readonly maskedTurns: number;
  readonly forks: number;
  readonly aborts: number;
  /** Replies that the client gave back in another form than they were sampled in, by the difference. */
  readonly echoes: Readonly<Record<string, number>>;
}

/** What workflow history knows of a sealed trace. */
export interface TraceSummary {
  readonly trace: BlobRef;
  readonly turns: number;
  readonly segments: number;
  readonly sampledTokens: number;
  /** Sum over the turns of what each sent to the engine; absent in older traces. */
  readonly promptTokens?: number;
  /** Smallest and largest policy version over the sampled tokens; null when none was sampled. */
  readonly minVersion: number | null;
  readonly maxVersion: number | null;
  readonly contextOverflow: boolean;
  readonly turnLimit: boolean;
  /** A call was refused because the rollout had sampled all that it may; absent: none was. */
  readonly tokenBudget?: boolean;
  /** Turns that ended because the engine stayed away beyond the hold, or that were cancelled while it was away. */
  readonly engineFailures: number;
  /** Turns that the gateway could not record, or at which it failed, and its absences that no turn followed; absent: none. */
  readonly gatewayFailures?: number;
  /** The last of those failures was the session's end: no turn began after it. Absent: it was not. */
  readonly cutOff?: boolean;
  /** Whose turns these are, where not the policy's. */
  readonly upstream?: Upstream;
  /** Requests that came again and got the turn that was there; absent: none. */
  readonly retries?: number;
  /** Absent in older traces, and in a group's report. */
  readonly counts?: TraceCounts;
}

/** How the engine draws a token. */
export interface TokenSampling {
  readonly temperature: number;
  readonly topP: number;
  /** -1: off. */
  readonly topK: number;
}

/** How the engine samples; belongs to the run, not to the agent. */
export interface Sampling extends TokenSampling {
  /** An agent may ask for fewer. */
  readonly maxTokensPerTurn: number;
  /** Whether the agent's own temperature, top-p and top-k go before these. Default: they do not. */
  readonly overridable?: boolean;
}
