import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import type { HostCall } from './host-tools.ts';
import { integer, number, oneOf } from './input.ts';
import type { Upstream } from './upstream.ts';

/** A half-open range [start, end) of sampled tokens of one turn, all sampled by one policy version. */
export interface VersionSpan {
  readonly version: number;
  readonly start: number;
  readonly end: number;
}

/** The end of a turn. `abort`: the agent ended while it was sampled, for example at its time limit. */
export type FinishReason = 'stop' | 'length' | 'abort';

/** One model call of the agent, as the gateway saw it. `logprobs[i]` (natural log) belongs to `sampledIds[i]`. */
export interface Turn {
  readonly index: number;
  /** The turn whose reply this prompt continues; null when the prompt was rendered as a whole. */
  readonly parent: number | null;
  /** The key of the conversation that the turn answers. */
  readonly requestKey: string;
  /** The number among the turns that answer this conversation, where the agent asked for several samples. Omitted for the first. */
  readonly sample?: number;
  /** The tokens that the prompt adds to its parent's prompt and sampled tokens; without a parent the whole prompt. */
  readonly promptIds: readonly number[];
  /** The length in tokens of the whole prompt as the engine got it. */
  readonly promptLength: number;
  /** The CRC-32 of the whole prompt's token ids, written as text with commas between them. */
  readonly promptChecksum: number;
  readonly sampledIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
  /** Times the engine aborted this turn and sampling resumed. Omitted when zero. */
  readonly aborts?: number;
  /** The report of the upstream model that answered. The turn then has no ids, logprobs and versions, and can't be trained. */
  readonly upstream?: UpstreamTurn;
  /** The sampling parameters, where the agent asked for others than the run's. Omitted when they are the run's. */
  readonly sampling?: TokenSampling;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The part of a turn that the server of an upstream model reports. */
export interface UpstreamTurn {
  /** The name of the model in the reply, which may be more exact than the requested one. */
  readonly model: string;
  readonly sampledTokens: number;
}

/** The purpose of a branch, judged by what its requests hold. */
const branchKinds = ['main', 'side', 'sub-agent', 'compaction', 'fork'] as const;
export type BranchKind = (typeof branchKinds)[number];

/** One sentence on each kind of branch. */
export const branchKindDescriptions: Readonly<Record<BranchKind, string>> = {
  main: "The agent's main conversation, and everything that cannot be distinguished from it.",
  side: 'Side calls such as titles and quota probes; they are never trained.',
  'sub-agent': 'A task that a tool call of another branch delegated.',
  compaction: 'The conversation continues after a summary of itself, or writes such a summary.',
  fork: 'The conversation continues from a history that does not provably extend a known one, or is another sample of the first request.',
};

/** The rule that decides which branches of a rollout's trace are trained. */
export const branchRule = z.strictObject({
  train: oneOf(['final', 'all'])
    .default('all')
    .describe('`final`: only the branch on which the main conversation ended; `all`: every branch except side calls.'),
  maxSegments: z
    .nullable(integer(1, 1_000_000, 'segments'))
    .default(null)
    .describe(
      'The largest number of segments of one trace. The branch on which the main conversation ended is kept first. ' +
        'null: no limit.',
    ),
  maxSegmentTokens: z
    .nullable(integer(1, 100_000_000, 'tokens'))
    .default(null)
    .describe(
      'The largest number of tokens of one segment. A longer branch is cut after its last turn that fits. null: no limit.',
    ),
  trainCutTurns: z
    .exactOptional(z.boolean())
    .describe(
      'Whether the tokens of a turn that the end of the agent cut are trained. The agent never acted on them, so the reward ' +
        'says nothing about them but that the time was over. Default: `false`.',
    ),
});
export type BranchRule = Readonly<z.output<typeof branchRule>>;

export const trainAllBranches: BranchRule = { train: 'all', maxSegments: null, maxSegmentTokens: null };

/** One leaf of the tree of turns, with the path that leads to it. */
export interface Branch {
  readonly index: number;
  readonly kind: BranchKind;
  /** Whether the branch is not part of the main conversation: a side call, a sub-agent, or what continues from one. */
  readonly aside?: true;
  /** Whether the last reply called tools whose results never came, because the agent was at work when the session ended. */
  readonly open?: true;
  readonly firstTurn: number;
  readonly lastTurn: number;
  readonly turns: number;
  readonly tokens: number;
  readonly finishReason: FinishReason;
  readonly aborts: number;
  /** The index of its segment; null when it has none. */
  readonly segment: number | null;
  /** The reason why the branch has no segment, or (`token-limit`) why its segment is shorter than the branch. */
  readonly dropped: 'rule' | 'segment-limit' | 'token-limit' | 'nothing-to-train' | null;
}

/**
 * One root-to-leaf token sequence to train on. All arrays have the length of `tokens`. `mask[i]` is 1 where `tokens[i]` was
 * sampled and is trained; there `logprobs[i]` and `versions[i]` are those of its sampling, elsewhere they are 0 and -1.
 */
export interface Segment {
  readonly index: number;
  readonly kind: BranchKind;
  readonly tokens: readonly number[];
  readonly mask: readonly (0 | 1)[];
  readonly logprobs: readonly number[];
  readonly versions: readonly number[];
  readonly finishReason: FinishReason;
  /** Times the engine aborted a turn of this segment. */
  readonly aborts: number;
  /** Turns on this segment whose tokens are not trained, with the reason. */
  readonly maskedTurns: readonly { readonly turn: number; readonly reason: string }[];
}

/** The sealed trace: a blob, write-once. */
export interface Trace {
  readonly session: string;
  readonly turns: readonly Turn[];
  readonly segments: readonly Segment[];
  /** All leaves, trained or not. */
  readonly branches: readonly Branch[];
  readonly counts: TraceCounts;
  /** Requests that did not provably extend a branch. */
  readonly forks: number;
  /** Turns that no segment trains, with the reason. */
  readonly maskedTurns: readonly { readonly turn: number; readonly reason: string }[];
  /** Sampled tool calls that were not a well-formed call of an offered tool, by what was wrong with them. */
  readonly faultyCalls: Readonly<Record<string, number>>;
  /** The calls of host tools, in order; absent if there were none. */
  readonly hostCalls?: readonly HostCall[];
  /** The conversation as text, for reports. */
  readonly transcript: readonly TranscriptEntry[];
}

/** One message of the conversation. The messages of a turn's request come before the turn's reply. */
export interface TranscriptEntry {
  readonly role: string;
  readonly text: string;
  readonly reasoning?: string;
  readonly calls?: readonly TranscriptCall[];
  /** The id of the call that this tool result answers. */
  readonly callId?: string;
  /** The turn whose reply this is; absent on messages that a request brought along. */
  readonly turn?: number;
}

/** A tool call of a reply. */
export interface TranscriptCall {
  readonly id: string;
  readonly name: string;
  /** The arguments as they were sampled: the JSON text of an object, if the policy wrote one. */
  readonly arguments: string;
}

/** Counts to look at before the tokens of a trace are trusted. */
export interface TraceCounts {
  readonly branches: Readonly<Partial<Record<BranchKind, number>>>;
  /** Branches that count as the main conversation because nothing shows what they are. */
  readonly unclear: number;
  /** Branches that the rule or its limits left without a segment. */
  readonly dropped: number;
  /** Valid sampled tokens that no segment trains. */
  readonly droppedTokens: number;
  readonly maskedTurns: number;
  readonly forks: number;
  readonly aborts: number;
  /** The number of replies whose echo by the client differs from what was sampled, by kind of difference. */
  readonly echoes: Readonly<Record<string, number>>;
  /** The sampled tool calls, by their status; absent if there were none. */
  readonly calls?: Readonly<Record<string, number>>;
  /** The turns of the main conversation, apart from those that the end of the agent cut; absent if there were none. */
  readonly mainTurns?: MainTurns;
  /** The requests that the agent gave up and then replaced by others; absent if there were none. */
  readonly cuts?: CutRequests;
}

/** The turns of the main conversation, and those among them in which no tool call was sampled, not even a faulty one. */
export interface MainTurns {
  readonly all: number;
  readonly withoutCall: number;
}

/** Requests that an agent gave up before their turns had ended, and the tokens that were sampled for them. */
export interface CutRequests {
  readonly requests: number;
  readonly tokens: number;
}

/** The summary of a sealed trace that workflow history holds. */
export interface TraceSummary {
  readonly trace: BlobRef;
  readonly turns: number;
  readonly segments: number;
  readonly sampledTokens: number;
  /** The sum over all turns of the tokens that each sent to the engine. */
  readonly promptTokens: number;
  /** The sum over all turns of their seconds, waits for the engine included. */
  readonly engineSeconds: number;
  /** The seconds in which turns ran and none was sampled, since an engine was waited for. */
  readonly waitedSeconds: number;
  /** Smallest and largest policy version over the sampled tokens; null when none was sampled. */
  readonly minVersion: number | null;
  readonly maxVersion: number | null;
  readonly contextOverflow: boolean;
  readonly turnLimit: boolean;
  /** Whether a call was refused because the rollout had used up `maxSampledTokens`. */
  readonly tokenBudget?: boolean;
  /** Turns that ended because the engine stayed away too long, or that were cancelled while it was away. */
  readonly engineFailures: number;
  /** Turns that the gateway failed to record or to answer, and its outages that no turn followed. Omitted when zero. */
  readonly gatewayFailures?: number;
  /** Calls of the host tool `environment` whose environment was lost. Omitted when zero. */
  readonly environmentFailures?: number;
  /** Whether the last of those failures ended the session: no turn began after it. */
  readonly cutOff?: boolean;
  /** The upstream model that sampled the turns; absent when the policy did. */
  readonly upstream?: Upstream;
  /** The number of calls of host tools. Omitted when zero. */
  readonly hostCalls?: number;
  /** Whether the agent has handed in its work by the host tool `submit`. */
  readonly submitted?: true;
  /** The answer that the agent has recorded by the host tool `answer`. */
  readonly answer?: BlobRef;
  /** Retried requests that were answered from the journal. Omitted when zero. */
  readonly retries?: number;
  /** Counts of the trace; a group's report leaves them out. */
  readonly counts?: TraceCounts;
}

/** The sampling parameters of the engine; they belong to the run, not to the agent. */
export const sampling = z.strictObject({
  temperature: number(0, 10)
    .default(1)
    .describe("The sampling temperature. A training run needs 1, because a trainer's logprobs are those of 1."),
  topP: number(0, 1)
    .gt(0, { error: 'expected a number above 0, at most 1' })
    .default(1)
    .describe(
      'The probability mass of nucleus sampling, above 0 and at most 1. A training run needs 1, or `allowTruncatedSampling`.',
    ),
  topK: integer(-1, 1_000_000)
    .default(-1)
    .describe('The number of most likely tokens to sample from; -1 turns it off. A training run needs that, too.'),
  maxTokensPerTurn: integer(1, 1_000_000, 'tokens')
    .default(4096)
    .describe('The largest number of tokens sampled in one turn. An agent may ask for fewer.'),
  overridable: z
    .exactOptional(z.boolean())
    .describe(
      "Whether the agent's own `temperature`, `top_p` and `top_k` override these, request by request. A turn that was " +
        'sampled otherwise says so in its trace. Must be `false` in a training run. Default: `false`.',
    ),
});
export type Sampling = Readonly<z.output<typeof sampling>>;

/** The parameters by which the engine draws one token. */
export type TokenSampling = Pick<Sampling, 'temperature' | 'topP' | 'topK'>;
