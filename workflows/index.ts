/* Exports exactly the registered workflows. */
export { evaluationSweep } from './evaluation-sweep.ts';
export { group } from './group.ts';
export { reaper } from './reaper.ts';
export { regrade } from './regrade.ts';
export { retention } from './retention.ts';
export { rollout } from './rollout.ts';
export { trainingRun } from './training-run.ts';
export { trainingStep } from './training-step.ts';
