import type { RunRequest } from '../../../../workflows/contracts/run.ts';

/**
 * The run of `npm run demo`; search.ts repeats it for other seeds and settings with in-process rewards. What proved to matter:
 * a warm-up whose mistakes go with the task's word and whose rate falls at its end (edits are then valid nearly always);
 * updates that are small at first and where gradients are small, or else Adam breaks valid edits; many small groups, so
 * that each update sees every word; a nucleus of 0.8, so that a choice of that probability is one; and choices
 * that take turns in the warm-up (an operator that is right but came out less likely than 0.2 is never tried, and its word never learnt).
 */
export const demoRun = (seed: number): RunRequest => ({
  tasks: `generated:train/${seed}`,
  seed,
  steps: 24,
  groupsPerStep: 6,
  rolloutsPerGroup: 4,
  maxStaleness: 1,
  settings: {
    agent: 'mini',
    agentTimeoutSec: 120,
    evaluationTimeoutSec: 60,
    maxTurns: 6,
    sampling: { temperature: 1, topP: 0.8, maxTokensPerTurn: 48 },
  },
  training: {
    advantage: 'grpo',
    aggregation: 'token-mean',
    loss: 'ppo',
    learningRate: 1.9e-3,
    learningRateRise: 5,
    learningRateFall: 20,
    adamEps: 5e-5,
    klCoef: 0.1,
    zeroVariance: 'keep',
    gradClipNorm: 0.05,
    checkpointEvery: 1,
  },
  warmUp: { steps: 750, examplesPerStep: 8, learningRate: 2e-3, learningRateFall: 225, rightShare: 0.28 },
});

/** Tasks that neither the warm-up nor the training has seen, for the evaluation before and after. */
export const heldOut = (seed: number) => ({ tasks: `generated:test/${seed}`, count: 40 });
