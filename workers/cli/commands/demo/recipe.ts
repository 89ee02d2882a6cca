import type { RunRequest } from '../../../../workflows/contracts/run.ts';

/** The work of a demo, by its seed. */
export interface DemoRecipe {
  run(seed: number): RunRequest;
  /** The tasks of the evaluations, and the `topP` with which these sample. */
  heldOut(seed: number): { readonly tasks: string; readonly count: number; readonly topP: number };
}

/**
 * The run of `npm run demo`, found by the search in test/recipe. The following choices matter:
 *
 * - The warm-up makes mistakes that depend on the task's word, and its learning rate falls at its end: nearly all edits
 *   are then valid.
 * - In the warm-up the choices take turns. A right operator that came out less likely than 0.2 would never be tried,
 *   and its word never learnt.
 * - Updates are small at first and where gradients are small, since Adam breaks valid edits otherwise.
 * - Each step has many small groups, so that each update sees every word.
 * - The gradient is clipped to a small norm: at 0.05 a single update ended all valid edits in some runs.
 */
export const demoRun = (seed: number): RunRequest => ({
  tasks: `generated:train/${seed}`,
  seed,
  steps: 36,
  groupsPerStep: 6,
  rolloutsPerGroup: 4,
  maxStaleness: 1,
  settings: {
    agent: 'mini',
    agentTimeoutSec: 120,
    evaluationTimeoutSec: 60,
    maxTurns: 6,
    sampling: { temperature: 1, maxTokensPerTurn: 48 },
  },
  training: {
    advantage: 'grpo',
    aggregation: 'token-mean',
    loss: 'ppo',
    learningRate: 1.9e-3,
    learningRateRise: 5,
    learningRateFall: 16,
    adamEps: 5e-5,
    klCoef: 0.1,
    zeroVariance: 'keep',
    gradClipNorm: 0.01,
    checkpointEvery: 1,
  },
  warmUp: { steps: 750, examplesPerStep: 8, learningRate: 2e-3, learningRateFall: 225, rightShare: 0.28 },
});

/**
 * The tasks of the evaluation before and after, which neither the warm-up nor the training has seen. A nucleus of 0.8 makes a
 * choice of that probability certain; training itself cannot sample so.
 */
export const heldOut = (seed: number) => ({ tasks: `generated:test/${seed}`, count: 40, topP: 0.8 });

/** The recipe of `npm run demo`. */
export const demoRecipe: DemoRecipe = { run: demoRun, heldOut };
