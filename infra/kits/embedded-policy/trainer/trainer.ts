import { createHash } from 'node:crypto';
import { PolicyError, refuse } from '../errors.ts';
import { findLoss, resolveLossConfig } from '../losses/registry.ts';
import { type ModelConfig, readModelConfig } from '../model/config.ts';
import { checksumOf, createParameterLayout, type ParameterLayout } from '../model/parameters.ts';
import { readOrInitializeWeights, readWeights } from '../model/weights-file.ts';
import { createTrainingPass, type TrainingPass } from '../network/training-pass.ts';
import type {
  AdamParams,
  Datum,
  ForwardBackwardResult,
  LossConfig,
  Metrics,
  OptimStepResult,
  ReceivedDigest,
  TrainedModelStatus,
  TrainerCore,
} from '../trainer-core.ts';
import { adamStep, checkAdamParams, norm } from './adamw.ts';
import { readCheckpoint, type TrainingState, writeCheckpoint } from './checkpoint.ts';
import { applyLoss, createTally, metricsOf } from './datum-loss.ts';
import { checkDatums, digestOf } from './datums.ts';

export interface TrainerOptions {
  readonly config: ModelConfig;
  readonly contextLength: number;
}

interface Model {
  readonly baseDir: string;
  state: TrainingState;
  readonly gradient: Float32Array;
  accumulatedDatums: number;
  checksum: string;
}

/**
 * Creates the trainer, on the thread that calls it: models by id, each with weights, Adam moments, accumulated gradient and the
 * digests of its requests. No method yields while it works, so calls take effect one after the other, in order.
 */
export function createTrainer(options: TrainerOptions): TrainerCore {
  const layout = createParameterLayout(options.config);
  const pass = createTrainingPass(options.config, layout, options.contextLength);
  const models = new Map<string, Model>();
  const find = (modelId: string): Model => {
    const model = models.get(modelId);
    if (model !== undefined) return model;
    const known = [...models.keys()].join(', ') || 'none';
    throw refuse('unknown-model', 'modelId', `a created model (${known})`, modelId);
  };
  const status = (modelId: string): TrainedModelStatus => describe(modelId, find(modelId));
  return {
    async createModel(modelId, { baseDir, seed }) {
      if (models.has(modelId)) throw refuse('model-exists', 'modelId', 'an id not in use', modelId);
      models.set(modelId, createModel(options.config, layout, baseDir, seed));
      return status(modelId);
    },
    forwardBackward: async (modelId, datums, lossName, { lossConfig = {}, forwardOnly = false } = {}) =>
      forwardBackward(options, pass, find(modelId), { datums, lossName, lossConfig, forwardOnly }),
    optimStep: async (modelId, adamParams) => optimStep(find(modelId), adamParams),
    async save(modelId, dir, { optimizer }) {
      const { baseDir, state } = find(modelId);
      return { path: dir, step: state.step, ...writeCheckpoint(dir, layout, state, { baseDir, optimizer }) };
    },
    async load(modelId, dir, { optimizer }) {
      const model = find(modelId);
      const fresh = (): TrainingState => freshState(readWeights(layout, dir), model.state.seed);
      replaceState(model, optimizer ? readCheckpoint(dir, layout) : fresh());
      return status(modelId);
    },
    async unload(modelId) {
      find(modelId);
      models.delete(modelId);
    },
    status: async (modelId) => status(modelId),
    models: async () => [...models.keys()],
  };
}

function createModel(config: ModelConfig, layout: ParameterLayout, baseDir: string, seed: number | undefined): Model {
  const own = readModelConfig(baseDir);
  const architecture = ({ seed: _, ...rest }: ModelConfig): string => JSON.stringify(rest);
  if (architecture(own) !== architecture(config)) {
    throw refuse(
      'invalid-model-dir',
      `${baseDir}/config.json`,
      `architecture ${architecture(config)}`,
      architecture(own),
    );
  }
  if (seed !== undefined && !(Number.isSafeInteger(seed) && seed >= 0)) {
    throw refuse('invalid-model-dir', 'seed', 'an integer, at least 0', seed);
  }
  const chosen = seed ?? own.seed;
  const state = freshState(readOrInitializeWeights(own, layout, baseDir, chosen), chosen);
  const gradient = new Float32Array(layout.count);
  return { baseDir, state, gradient, accumulatedDatums: 0, checksum: checksumOf(state.weights) };
}

function freshState(weights: Float32Array, seed: number): TrainingState {
  const zeros = (): Float32Array => new Float32Array(weights.length);
  return { weights, moment1: zeros(), moment2: zeros(), step: 0, seed, received: [] };
}

function replaceState(model: Model, state: TrainingState): void {
  model.state = state;
  model.checksum = checksumOf(state.weights);
  dropGradient(model);
}

function dropGradient(model: Model): void {
  model.gradient.fill(0);
  model.accumulatedDatums = 0;
}

interface ForwardBackwardCall {
  readonly datums: readonly Datum[];
  readonly lossName: string;
  readonly lossConfig: LossConfig;
  readonly forwardOnly: boolean;
}

/** Accumulates the gradient in the pass's arena; it replaces the model's gradient only once the whole call has succeeded. */
function forwardBackward(
  options: TrainerOptions,
  pass: TrainingPass,
  model: Model,
  call: ForwardBackwardCall,
): ForwardBackwardResult {
  const loss = findLoss(call.lossName);
  const settings = resolveLossConfig(loss, call.lossConfig);
  const limits = { vocabSize: options.config.vocabSize, contextLength: options.contextLength };
  const datums = checkDatums(call.datums, loss, settings, limits);
  const digest = digestOf(loss.name, settings, datums);
  const tally = createTally();
  pass.setWeights(model.state.weights);
  pass.gradients.set(model.gradient);
  const outputs = datums.map((datum) => {
    const logprobs = pass.forward(datum.inputTokens, datum.targetTokens);
    const { slopes, ...output } = applyLoss(loss, settings, { datum, logprobs }, tally);
    if (!call.forwardOnly && slopes.some((slope) => slope !== 0)) pass.backward(slopes);
    return output;
  });
  if (!call.forwardOnly) {
    acceptGradient(model, pass.gradients);
    model.accumulatedDatums += datums.length;
    remember(model, 'forward_backward', digest);
  }
  return { outputs, metrics: metricsOf(loss, settings, tally), digest };
}

function acceptGradient(model: Model, gradient: Float32Array): void {
  const size = norm(gradient);
  if (!Number.isFinite(size)) {
    const message = `forwardBackward: expected a finite gradient, got norm ${size}; the call had no effect`;
    throw new PolicyError('non-finite', message, { field: 'gradient', got: String(size) });
  }
  model.gradient.set(gradient);
}

function optimStep(model: Model, params: AdamParams): OptimStepResult {
  checkAdamParams(params);
  const step = model.state.step + 1;
  const datums = model.accumulatedDatums;
  const update = stepOrDropGradient(model, params, step);
  remember(model, 'optim_step', digestOfParams(params));
  const { weights, moment1, moment2, gradientNorm, updateNorm } = update;
  replaceState(model, { ...model.state, weights, moment1, moment2, step });
  const metrics: Metrics = {
    grad_norm: gradientNorm,
    update_norm: updateNorm,
    learning_rate: params.learningRate,
    datums,
  };
  return { step, metrics, checksum: model.checksum };
}

function stepOrDropGradient(model: Model, params: AdamParams, step: number) {
  try {
    return adamStep(model.state, model.gradient, params, step);
  } catch (error) {
    dropGradient(model); // otherwise every later step would fail on it
    throw error;
  }
}

function digestOfParams(params: AdamParams): string {
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = params;
  return createHash('sha256')
    .update(JSON.stringify([learningRate, beta1, beta2, eps, weightDecay, gradClipNorm]))
    .digest('hex');
}

/** The number of last steps whose digests are kept. By steps, so that a loaded checkpoint continues with the same list. */
const keptSteps = 16;

function remember(model: Model, kind: ReceivedDigest['kind'], digest: string): void {
  const { state } = model;
  const kept = state.received.filter(({ step }) => step > state.step - keptSteps);
  model.state = { ...state, received: [...kept, { kind, step: state.step, digest }] };
}

function describe(modelId: string, model: Model): TrainedModelStatus {
  const { baseDir, state, accumulatedDatums, checksum } = model;
  return { modelId, baseDir, step: state.step, checksum, accumulatedDatums, received: state.received };
}
