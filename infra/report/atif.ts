import { pathTo, sampledTokensOf } from '../../workflows/algorithms/turns.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Branch, Trace, TranscriptEntry, Turn } from '../../workflows/contracts/trace.ts';

/**
 * A rollout in the Agent Trajectory Interchange Format, version 1.7 (Harbor, docs/rfcs/0001-trajectory-format.md), for the
 * tools that read it. A trajectory is a line, a trace is a tree: the branch on which the agent's own line ended is the
 * trajectory, every other branch is embedded in it with its kind, and says which of its steps it shares with that one.
 * What the format has no field for is in `extra`. Token ids and logprobs (natural logs) are those of the sampling.
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
  /** Given to the branch by an earlier one, or retold by the agent. */
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
  /** `appended_prompt_token_ids`: what the prompt adds to the prompt and the tokens of the step before it. */
  readonly extra: {
    readonly turn: number;
    readonly appended_prompt_token_ids: readonly number[];
    readonly policy_versions: readonly number[];
    readonly finish_reason: string;
  };
}

export function toAtif(result: RolloutResult, trace: Trace): AtifTrajectory {
  const said = saidByTurn(trace);
  const leaves = leavesOf(trace);
  const main = leaves.findLast(isMain) ?? leaves.at(-1);
  const mainPath = main === undefined ? [] : pathTo(trace.turns, trace.turns[main.lastTurn]);
  const shared = new Set(mainPath.map(({ index }) => index));
  const { workflowId, task, outcome, reward, stop, failure } = result;
  const trajectory = (path: readonly Turn[], leaf: Leaf | undefined, copied: ReadonlySet<number>): AtifTrajectory => ({
    schema_version: 'ATIF-v1.7',
    session_id: trace.session,
    trajectory_id: `branch-${leaf === undefined ? 0 : leaves.indexOf(leaf) + 1}`,
    agent: { name: result.agent, version: 'unknown' },
    steps: stepsOf(path, said, copied),
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

/** In older traces, which say nothing of branches, all are the main line. */
function leavesOf({ turns, branches }: Trace): readonly Leaf[] {
  if (branches !== undefined) return branches;
  const parents = new Set(turns.map(({ parent }) => parent));
  return turns
    .filter(({ index }) => !parents.has(index))
    .map(({ index }) => ({ kind: 'main', lastTurn: index, segment: null }));
}

interface Said {
  /** What the turn's request was the first to tell. */
  readonly brought: readonly TranscriptEntry[];
  readonly reply: TranscriptEntry;
}

function saidByTurn({ transcript }: Trace): Map<number, Said> {
  const said = new Map<number, Said>();
  let brought: TranscriptEntry[] = [];
  for (const entry of transcript) {
    if (entry.turn === undefined) brought.push(entry);
    else {
      said.set(entry.turn, { brought, reply: entry });
      brought = [];
    }
  }
  return said;
}

type Draft = Omit<AtifStep, 'step_id'>;

function stepsOf(
  path: readonly Turn[],
  said: ReadonlyMap<number, Said>,
  copied: ReadonlySet<number>,
): readonly AtifStep[] {
  const steps: Draft[] = [];
  for (const turn of path) {
    const { brought, reply } = said.get(turn.index) ?? { brought: [], reply: { role: 'assistant', text: '' } };
    const isCopied = copied.has(turn.index) ? { is_copied_context: true as const } : {};
    for (const entry of brought) addGiven(steps, entry, { timestamp: timeOf(turn.startedAt), ...isCopied });
    const common = { timestamp: timeOf(turn.endedAt), ...isCopied };
    steps.push({ ...common, ...agentStep(reply), metrics: metricsOf(turn) });
  }
  return steps.map((step, index) => ({ step_id: index + 1, ...step }));
}

/** A tool's result belongs to the step that called it. */
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
    // A policy may write anything.
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
