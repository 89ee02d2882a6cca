import type { RunRequest } from '../../workflows/contracts/run.ts';
import type { ToolCalls } from './record-agent.ts';

/** A run on the reference stack. */
export interface ReferenceRun {
  readonly request: RunRequest & { readonly warmUp: NonNullable<RunRequest['warmUp']> };
  readonly maxTokensPerTurn: number;
  /** Recordings of the agent's own prompts for the warm-up; null to use temper's demonstrations. */
  readonly recorded: { readonly calls: ToolCalls; traces(right: string, wrong: string): readonly string[] } | null;
  /** Whether the rewards must rise. A run of one step only shows that training works. */
  readonly learns: boolean;
  /** Further settings of its stack. */
  readonly settings: Readonly<Record<string, string>>;
}

export type ReferenceAgent = 'mini' | 'pi' | 'claude-code';

/**
 * A run on one task. The model has random weights under its adapter, and can only learn to recite: taught four tasks in the
 * same number of steps, it chose the same operator for all. The warm-up teaches the whole conversation with mini, with the
 * right operator in half of the cases and otherwise the typical mistake for the word.
 */
function withMini(maxTokensPerTurn: number) {
  return {
    tasks: 'generated:train/1?count=1',
    seed: 1,
    steps: 14,
    groupsPerStep: 2,
    rolloutsPerGroup: 8,
    // Strictly on-policy: the trainer must recompute the engine's own logprobs.
    maxStaleness: 0,
    settings: {
      agent: 'mini',
      sandbox: 'local',
      agentTimeoutSec: 300,
      // One turn each to read, to edit and to submit.
      maxTurns: 3,
      sampling: { temperature: 1, maxTokensPerTurn },
    },
    // A random model forgets its phrases in updates that have nothing left to teach, so the learning rate falls towards the
    // end, and the KL penalty preserves the warm-up.
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

/** A run with the unmodified Pi, which reads, edits and ends with a message. Its own prompt has 2,000 tokens. */
function pi(): ReferenceRun {
  const maxTokensPerTurn = 128;
  const base = withMini(maxTokensPerTurn);
  return {
    request: {
      ...base,
      steps: 9,
      // Pi's calls are long: at topP 1, one in six had a wrong word, even when the edit was right, for all of 12 steps.
      allowTruncatedSampling: true,
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
      // The wrong trace appears twice, because with equal numbers the first reward is often above 0.6 by chance.
      traces: (right, wrong) => [right, wrong, wrong],
    },
    learns: true,
    settings: {},
  };
}

/**
 * A run with the unmodified Claude Code, whose prompts have 18,000 tokens: two warm-up steps on its own conversation, and one
 * training step on two rollouts.
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
      // vLLM's CPU build crashes on a seed with a prompt that it processes in several parts.
      TEMPER_ENGINE_SEEDS: 'off',
      // SkyRL receives one sequence at a time; it would process four at once, whose attention needs 15 GB each.
      TEMPER_TRAINER_REQUEST_TOKENS: '20000',
    },
  };
}

/** The reference runs, by agent. */
export const referenceRuns: Readonly<Record<ReferenceAgent, () => ReferenceRun>> = {
  mini,
  pi,
  'claude-code': claudeCode,
};
