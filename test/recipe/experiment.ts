import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadModel, type Model } from '../../infra/kits/chat-tokens/index.ts';
import type { PolicyCore } from '../../infra/kits/embedded-policy/core.ts';
import { createPolicyCore } from '../../infra/kits/embedded-policy/create-policy-core.ts';
import type { Datum } from '../../infra/kits/embedded-policy/trainer-core.ts';
import { type Bug, bugAt } from '../../infra/tasks/generated/bug.ts';
import { createDemonstrations } from '../../infra/tasks/generated/demonstrations.ts';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';
import { meanOf } from '../../workflows/algorithms/mean.ts';
import { normalise } from '../../workflows/algorithms/normalise.ts';
import type { RunInput, Training, WarmUp } from '../../workflows/contracts/run.ts';
import { type SimulatedRollout, simulateRollout } from './rollout.ts';
import { toWarmUpData } from './warm-up.ts';

/**
 * The result of a training run without sandboxes, gateway and workflows, with the same tasks, ids, losses and updates. Each
 * batch is sampled one version behind, as in a pipelined run at `maxStaleness` 1.
 */
export interface Experiment {
  readonly rewards: readonly number[];
  readonly heldOutBefore: number;
  readonly heldOutAfter: number;
  /** The same without truncated sampling, as in the training. */
  readonly heldOutAtOne: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface ExperimentOptions {
  readonly modelDir: string;
  readonly run: RunInput;
  readonly warmUp: WarmUp;
  readonly heldOut: { readonly count: number; readonly topP: number };
  readonly log: (line: string) => void;
}

interface Setup {
  readonly options: ExperimentOptions;
  readonly core: PolicyCore;
  readonly model: Model;
  readonly directory: string;
}

const adam = { beta1: 0.9, beta2: 0.95, weightDecay: 0 } as const;
/** The number of rollouts that an evaluation runs at once. */
const evaluationBatch = 64;

export async function runExperiment(options: ExperimentOptions): Promise<Experiment> {
  const directory = await mkdtemp(join(tmpdir(), 'temper-recipe-'));
  const core = await createPolicyCore({ modelDir: options.modelDir });
  try {
    const setup: Setup = { options, core, directory, model: await loadModel(options.modelDir) };
    const startedAt = performance.now();
    await warmUp(setup);
    const warmUpSeconds = (performance.now() - startedAt) / 1000;
    const { topP } = options.heldOut;
    const heldOutBefore = await evaluate(setup, topP);
    const rewards = await train(setup);
    const heldOutAfter = await evaluate(setup, topP);
    const heldOutAtOne = await evaluate(setup, 1);
    const seconds = (performance.now() - startedAt) / 1000;
    return { rewards, heldOutBefore, heldOutAfter, heldOutAtOne, warmUpSeconds, seconds };
  } finally {
    await core.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function warmUp({ options, core, model, directory }: Setup): Promise<void> {
  const { run, warmUp: settings, modelDir } = options;
  const { steps, examplesPerStep, rightShare } = settings;
  await core.trainer.createModel('warm-up', { baseDir: modelDir, seed: run.seed });
  const demonstrate = createDemonstrations({ model, tasks: run.tasks, seed: run.seed, rightShare });
  for (let step = 0; step < steps; step += 1) {
    const examples = Array.from({ length: examplesPerStep }, (_, index) => demonstrate(step * examplesPerStep + index));
    const { metrics } = await core.trainer.forwardBackward('warm-up', toWarmUpData(examples), 'cross_entropy');
    const learningRate = learningRateAt(settings, step + 1, steps);
    await core.trainer.optimStep('warm-up', { ...adam, eps: 1e-8, learningRate, gradClipNorm: 1 });
    if ((step + 1) % 50 === 0) options.log(`warm-up ${step + 1}: loss ${metrics['loss:sum']?.toFixed(3)}`);
  }
  const path = join(directory, 'v0');
  await core.trainer.save('warm-up', path, { optimizer: false });
  // As in a run, version 0 is loaded into new models, so that the warm-up's moments do not affect the first updates.
  for (const name of ['policy', 'reference']) await core.trainer.createModel(name, { baseDir: path });
  await core.trainer.unload('warm-up');
  await core.sampler.loadWeights(path, '0');
}

async function train(setup: Setup): Promise<readonly number[]> {
  const { run, log } = setup.options;
  const rewards: number[] = [];
  let ready = await sampleStep(setup, 0);
  for (let step = 1; step <= run.steps; step += 1) {
    // The next batch is sampled while this one is trained on, so it is one version behind.
    const [next, path] = await Promise.all([
      step < run.steps ? sampleStep(setup, step) : [],
      update(setup, step, ready),
    ]);
    const all = ready.flat().map(({ reward }) => reward);
    rewards.push(meanOf(all));
    const equal = ready.filter((group) => group.every(({ reward }) => reward === group[0]?.reward)).length;
    log(`step ${step}: reward ${meanOf(all).toFixed(3)}, groups of equal rewards ${equal}`);
    await setup.core.sampler.loadWeights(path, String(step));
    ready = next;
  }
  return rewards;
}

function sampleStep(setup: Setup, step: number): Promise<readonly (readonly SimulatedRollout[])[]> {
  const { groupsPerStep, rolloutsPerGroup, seed } = setup.options.run;
  const groups = Array.from({ length: groupsPerStep }, (_, index) => step * groupsPerStep + index);
  return Promise.all(
    groups.map((group) => {
      const bug = bugAt('train', seed, group);
      const numbers = Array.from({ length: rolloutsPerGroup }, (_, index) => index);
      return Promise.all(numbers.map((index) => simulate(setup, { bug, id: `train/${group}/${index}`, topP: 1 })));
    }),
  );
}

async function evaluate(setup: Setup, topP: number): Promise<number> {
  const { heldOut, run } = setup.options;
  const rewards: number[] = [];
  for (let from = 0; from < heldOut.count; from += evaluationBatch) {
    const numbers = Array.from({ length: Math.min(evaluationBatch, heldOut.count - from) }, (_, index) => from + index);
    const rollouts = numbers.map((index) =>
      simulate(setup, { bug: bugAt('test', run.seed, index), id: `test/${index}`, topP }),
    );
    rewards.push(...(await Promise.all(rollouts)).map(({ reward }) => reward));
  }
  return meanOf(rewards);
}

let simulated = 0;
function simulate(
  { core, model, options }: Setup,
  { bug, id, topP }: { readonly bug: Bug; readonly id: string; readonly topP: number },
): Promise<SimulatedRollout> {
  const { maxTurns, sampling } = options.run.settings;
  simulated += 16;
  return simulateRollout(
    {
      model,
      sampler: core.sampler,
      maxTurns,
      maxTokensPerTurn: sampling.maxTokensPerTurn,
      contextLength: core.model.contextLength,
      topP,
    },
    bug,
    `${id}/${simulated}`,
    options.run.seed * 1_000_003 + simulated,
  );
}

/** Makes one update and returns the directory of the new weights. */
async function update(setup: Setup, step: number, groups: readonly (readonly SimulatedRollout[])[]): Promise<string> {
  const { core, directory, options } = setup;
  const { training } = options.run;
  const rollouts = groups.flat();
  const contexts = rollouts.map(toContext);
  const reference = await core.trainer.forwardBackward('reference', contexts, 'cross_entropy', { forwardOnly: true });
  const data = withAdvantages(
    groups,
    contexts,
    reference.outputs.map(({ logprobs }) => logprobs),
    training,
  );
  const { loss, clipLow, clipHigh, gradClipNorm, adamEps: eps } = training;
  const learningRate = learningRateAt(training, step, options.run.steps);
  const clip = loss === 'importance_sampling' ? {} : { clip_low_threshold: clipLow, clip_high_threshold: clipHigh };
  await core.trainer.forwardBackward('policy', data, loss, { lossConfig: clip });
  await core.trainer.optimStep('policy', { ...adam, eps, learningRate, gradClipNorm });
  const path = join(directory, `v${step}`);
  await core.trainer.save('policy', path, { optimizer: false });
  return path;
}

function withAdvantages(
  groups: readonly (readonly SimulatedRollout[])[],
  contexts: readonly Datum[],
  reference: readonly ArrayLike<number>[],
  training: Training,
): readonly Datum[] {
  const { advantages, tokenWeights } = normalise(
    {
      rollouts: groups.flatMap((rollouts, group) => rollouts.map(({ reward }) => ({ group, reward }))),
      segments: groups.flat().map(({ mask }, rollout) => ({ rollout, segment: { mask } })),
    },
    training,
  );
  return contexts.map((context, index) => {
    const { logprobs = [], weights = [] } = context;
    const perToken = Array.from(weights, (trained, at) => {
      const drift = (logprobs[at] ?? 0) - (reference[index]?.[at] ?? 0);
      return trained === 0 ? 0 : (tokenWeights[index] ?? 0) * ((advantages[index] ?? 0) - training.klCoef * drift);
    });
    return { ...context, advantages: perToken };
  });
}

const toContext = ({ tokens, mask, logprobs }: SimulatedRollout): Datum => ({
  inputTokens: tokens.slice(0, -1),
  targetTokens: tokens.slice(1),
  weights: mask.slice(1),
  logprobs: logprobs.slice(1),
});
