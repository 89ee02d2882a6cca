import type { RunRequest } from '../../workflows/contracts/run.ts';

/**
 * The run of `npm run demo`; search.ts tries others with in-process rewards. Not settled yet: how far it gets depends on the
 * seed, mostly by how well the warm-up has learnt to copy names from the file that it read.
 */
export const demoRun = (seed: number): RunRequest => ({
  tasks: `generated:train/${seed}`,
  seed,
  steps: 40,
  groupsPerStep: 4,
  rolloutsPerGroup: 8,
  maxStaleness: 1,
  settings: {
    agent: 'mini',
    agentTimeoutSec: 120,
    evaluationTimeoutSec: 60,
    maxTurns: 6,
    sampling: { temperature: 1, topP: 0.98, maxTokensPerTurn: 48 },
  },
  training: {
    advantage: 'grpo',
    aggregation: 'token-mean',
    loss: 'ppo',
    learningRate: 8e-4,
    learningRateRise: 10,
    learningRateFall: 20,
    adamEps: 1e-5,
    klCoef: 0.1,
    zeroVariance: 'keep',
    gradClipNorm: 0.05,
    checkpointEvery: 1,
  },
  warmUp: { steps: 750, examplesPerStep: 8, learningRate: 2e-3, learningRateFall: 225, rightShare: 0.22 },
});

/** Tasks that neither the warm-up nor the training has seen, for the evaluation before and after. */
export const heldOut = (seed: number) => ({ tasks: `generated:test/${seed}`, count: 48 });
