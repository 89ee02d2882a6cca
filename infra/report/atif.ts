import { pathTo, sampledTokensOf } from '../../workflows/algorithms/turns.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Branch, Trace, TranscriptEntry, Turn } from '../../workflows/contracts/trace.ts';

/**
 * A rollout in the Agent Trajectory Interchange Format, version 1.7 (Harbor, docs/rfcs/0001-trajectory-format.md). A trajectory
 * is linear, while a trace is a tree: the branch on which the agent's own conversation ended is the trajectory. Every other
 * branch is embedded with its kind, and marks the steps that it shares with the trajectory. Data without a field in the format
 * is in `extra`. Token ids and logprobs (natural logarithms) are those of sampling.
 */
export interface AtifTrajectory {
  readonly schema_version: 'ATIF-v1.7';
  readonly session_id: string;
  readonly trajectory_id: string;
  readonly agent: { readonly name: string; readonly version: string };
  readonly steps: readonly AtifStep[];
  readonly final_metrics: Readonly<Record<'total_prompt_tokens' | 'total_completion_tokens' | 'total_steps', number>>;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly subagent_trajectories?: readonly AtifTrajectory[];
}

export interface AtifStep {
  readonly step_id: number;
  readonly timestamp: string;
  readonly source: 'system' | 'user' | 'agent';
  readonly message: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly AtifToolCall[];
  readonly observation?: { readonly results: readonly AtifResult[] };
  readonly metrics?: AtifMetrics;
  /** Set when the step comes from an earlier branch, or was repeated by the agent. */
  readonly is_copied_context?: true;
}

export interface AtifToolCall {
  readonly tool_call_id: string;
  readonly function_name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly extra?: { readonly unparsed_arguments: string };
}

export interface AtifResult {
  readonly source_call_id?: string;
  readonly content: string;
}

export interface AtifMetrics {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly completion_token_ids: readonly number[];
  readonly logprobs: readonly number[];
  /** Here `appended_prompt_token_ids` are the tokens that the prompt adds to the prompt and reply of the previous step. */
  readonly extra: {
    readonly turn: number;
    readonly appended_prompt_token_ids: readonly number[];
    readonly policy_versions: readonly number[];
    readonly finish_reason: string;
  };
}

/** Converts a rollout and its trace to an ATIF trajectory. */
export function toAtif(result: RolloutResult, trace: Trace): AtifTrajectory {
  const texts = textsByTurn(trace);
  const leaves: readonly Leaf[] = trace.branches;
  const main = leaves.findLast(isMain) ?? leaves.at(-1);
  const mainPath = main === undefined ? [] : pathTo(trace.turns, trace.turns[main.lastTurn]);
  const shared = new Set(mainPath.map(({ index }) => index));
  const { workflowId, task, outcome, reward, stop, failure } = result;
  const trajectory = (path: readonly Turn[], leaf: Leaf | undefined, copied: ReadonlySet<number>): AtifTrajectory => ({
    schema_version: 'ATIF-v1.7',
    session_id: trace.session,
    trajectory_id: `branch-${leaf === undefined ? 0 : leaves.indexOf(leaf) + 1}`,
    agent: { name: result.agent, version: result.agentVersion ?? 'unknown' },
    steps: stepsOf(path, texts, copied),
    final_metrics: {
      total_prompt_tokens: sum(path.map(({ promptLength }) => promptLength)),
      total_completion_tokens: sum(path.map(sampledTokensOf)),
      total_steps: path.length,
    },
    extra: leaf === undefined ? {} : { kind: leaf.kind, segment: leaf.segment },
  });
  const others = leaves.filter((leaf) => leaf !== main);
  const root = trajectory(mainPath, main, new Set());
  return {
    ...root,
    extra: { ...root.extra, workflow_id: workflowId, task, outcome, reward, stop, failure },
    ...(others.length === 0
      ? {}
      : {
          subagent_trajectories: others.map((leaf) =>
            trajectory(pathTo(trace.turns, trace.turns[leaf.lastTurn]), leaf, shared),
          ),
        }),
  };
}

type Leaf = Pick<Branch, 'kind' | 'aside' | 'lastTurn' | 'segment'>;

const isMain = ({ kind, aside }: Leaf): boolean => aside !== true && kind !== 'side' && kind !== 'sub-agent';

interface TurnTexts {
  /** The messages that the turn's request was the first to contain. */
  readonly added: readonly TranscriptEntry[];
  readonly reply: TranscriptEntry;
}

function textsByTurn({ transcript }: Trace): Map<number, TurnTexts> {
  const texts = new Map<number, TurnTexts>();
  let added: TranscriptEntry[] = [];
  for (const entry of transcript) {
    if (entry.turn === undefined) added.push(entry);
    else {
      texts.set(entry.turn, { added, reply: entry });
      added = [];
    }
  }
  return texts;
}

type Draft = Omit<AtifStep, 'step_id'>;

function stepsOf(
  path: readonly Turn[],
  texts: ReadonlyMap<number, TurnTexts>,
  copied: ReadonlySet<number>,
): readonly AtifStep[] {
  const steps: Draft[] = [];
  for (const turn of path) {
    const { added, reply } = texts.get(turn.index) ?? { added: [], reply: { role: 'assistant', text: '' } };
    const isCopied = copied.has(turn.index) ? { is_copied_context: true as const } : {};
    for (const entry of added) addGiven(steps, entry, { timestamp: timeOf(turn.startedAt), ...isCopied });
    const common = { timestamp: timeOf(turn.endedAt), ...isCopied };
    steps.push({ ...common, ...agentStep(reply), metrics: metricsOf(turn) });
  }
  return steps.map((step, index) => ({ step_id: index + 1, ...step }));
}

/** Adds a message that the agent was given. A tool's result is added to the step that called the tool. */
function addGiven(
  steps: Draft[],
  entry: TranscriptEntry,
  common: Pick<Draft, 'timestamp' | 'is_copied_context'>,
): void {
  const { role, text, callId } = entry;
  const last = steps.at(-1);
  if (role === 'tool' && last?.source === 'agent') {
    const isKnown = last.tool_calls?.some((call) => call.tool_call_id === callId) === true;
    const result = { ...(isKnown && callId !== undefined ? { source_call_id: callId } : {}), content: text };
    steps[steps.length - 1] = { ...last, observation: { results: [...(last.observation?.results ?? []), result] } };
  } else if (role === 'assistant') {
    steps.push({ ...common, ...agentStep(entry), is_copied_context: true });
  } else {
    steps.push({ ...common, source: role === 'system' ? 'system' : 'user', message: text });
  }
}

function agentStep({ text, reasoning, calls = [] }: TranscriptEntry) {
  return {
    source: 'agent' as const,
    message: text,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(toolCall) }),
  };
}

function toolCall({ id, name, arguments: text }: NonNullable<TranscriptEntry['calls']>[number]): AtifToolCall {
  const named = { tool_call_id: id, function_name: name };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { ...named, arguments: value as Record<string, unknown> };
    }
  } catch {
    // The arguments of a policy need not be valid JSON.
  }
  return { ...named, arguments: {}, extra: { unparsed_arguments: text } };
}

const metricsOf = (turn: Turn): AtifMetrics => ({
  prompt_tokens: turn.promptLength,
  completion_tokens: sampledTokensOf(turn),
  completion_token_ids: turn.sampledIds,
  logprobs: turn.logprobs,
  extra: {
    turn: turn.index,
    appended_prompt_token_ids: turn.promptIds,
    policy_versions: [...new Set(turn.versions.map(({ version }) => version))],
    finish_reason: turn.finishReason,
  },
});

const timeOf = (milliseconds: number): string => new Date(milliseconds).toISOString();
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
