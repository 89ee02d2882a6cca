import type { RunRequest } from '../../workflows/contracts/run.ts';
import type { ToolCalls } from './record-agent.ts';

/** A run on the reference stack. */
export interface ReferenceRun {
  readonly request: RunRequest & { readonly warmUp: NonNullable<RunRequest['warmUp']> };
  readonly maxTokensPerTurn: number;
  /** Taught by what the agent itself asks and is told; null: by demonstrations of ours. */
  readonly recorded: { readonly calls: ToolCalls; traces(right: string, wrong: string): readonly string[] } | null;
  /** Must the rewards rise? One step shows no more than that it can be done. */
  readonly learns: boolean;
  /** What else its stack is configured with. */
  readonly settings: Readonly<Record<string, string>>;
}

export type ReferenceAgent = 'mini' | 'pi' | 'claude-code';

/**
 * One task: the model has random weights under its adapter, and can learn no more than to recite. (Taught four tasks in as
 * many steps, it chose the same operator for all.) Taught is the whole conversation with mini, the operator right half
 * of the time and otherwise the mistake that goes with the word.
 */
function withMini(maxTokensPerTurn: number) {
  return {
    tasks: 'generated:train/1?count=1',
    seed: 1,
    steps: 14,
    groupsPerStep: 2,
    rolloutsPerGroup: 8,
    // Strictly on-policy: what the trainer recomputes must be what the engine sampled.
    maxStaleness: 0,
    settings: {
      agent: 'mini',
      sandbox: 'local',
      agentTimeoutSec: 300,
      // To read, to edit and to submit.
      maxTurns: 3,
      sampling: { temperature: 1, maxTokensPerTurn },
    },
    // What is random under the adapter loses its phrases to updates that have nothing left to teach: the rate falls to the
    // end, and the penalty holds on to what was taught.
    training: {
      loss: 'importance_sampling',
      aggregation: 'token-mean',
      learningRate: 1e-3,
      learningRateFall: 12,
      loraRank: 16,
      klCoef: 0.1,
      zeroVariance: 'keep',
    },
    warmUp: { steps: 90, examplesPerStep: 4, learningRate: 5e-3, learningRateFall: 30, rightShare: 0.5 },
  } satisfies RunRequest;
}

function mini(): ReferenceRun {
  const maxTokensPerTurn = 64;
  return { request: withMini(maxTokensPerTurn), maxTokensPerTurn, recorded: null, learns: true, settings: {} };
}

/** Unmodified Pi: reads, edits and says a last word; what it asks is its own, 2,000 tokens. */
function pi(): ReferenceRun {
  const maxTokensPerTurn = 128;
  const base = withMini(maxTokensPerTurn);
  return {
    request: {
      ...base,
      steps: 9,
      // Its calls are long: at a full nucleus one in six slipped in a word of theirs, however often the edit was right.
      settings: {
        ...base.settings,
        agent: 'pi',
        sandbox: 'docker',
        sampling: { ...base.settings.sampling, topP: 0.9 },
      },
      training: { ...base.training, learningRateFall: 7 },
      warmUp: { ...base.warmUp, examplesPerStep: 3 },
    },
    maxTokensPerTurn,
    recorded: {
      calls: {
        read: (path) => ({ name: 'read', arguments: { path } }),
        edit: (path, oldText, newText) => ({ name: 'edit', arguments: { path, edits: [{ oldText, newText }] } }),
      },
      // The wrong one twice as often: of as many, chance alone often has more than 0.6 right at first.
      traces: (right, wrong) => [right, wrong, wrong],
    },
    learns: true,
    settings: {},
  };
}

/**
 * Unmodified Claude Code, whose prompts have 18,000 tokens: two steps of teaching by its own conversation and one step of
 * training by two rollouts.
 */
function claudeCode(): ReferenceRun {
  const maxTokensPerTurn = 128;
  const base = withMini(maxTokensPerTurn);
  const path = (file: string): string => `/workspace/${file}`;
  return {
    request: {
      ...base,
      steps: 1,
      groupsPerStep: 1,
      rolloutsPerGroup: 2,
      settings: { ...base.settings, agent: 'claude-code?subAgents=off&compaction=off', sandbox: 'docker' },
      training: { ...base.training, learningRateFall: 0 },
      warmUp: { ...base.warmUp, steps: 2, examplesPerStep: 1, learningRateFall: 0 },
    },
    maxTokensPerTurn,
    recorded: {
      calls: {
        read: (file) => ({ name: 'Read', arguments: { file_path: path(file) } }),
        edit: (file, before, after) => ({
          name: 'Edit',
          arguments: { file_path: path(file), old_string: before, new_string: after },
        }),
      },
      traces: (right, wrong) => [right, wrong],
    },
    learns: false,
    settings: {
      // vLLM's CPU build dies of a seed at a prompt that it takes in several parts.
      TEMPER_ENGINE_SEEDS: 'off',
      // SkyRL gets one sequence at a time: it would take four at once, whose attention needs 15 GB each.
      TEMPER_TRAINER_REQUEST_TOKENS: '20000',
    },
  };
}

/** Each with its reasons; made anew, since nobody shares them. */
export const referenceRuns: Readonly<Record<ReferenceAgent, () => ReferenceRun>> = {
  mini,
  pi,
  'claude-code': claudeCode,
};
