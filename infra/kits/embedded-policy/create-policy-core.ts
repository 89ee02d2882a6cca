import type { ModelDescription, PolicyCore, PolicyCoreOptions, SamplingCore } from './core.ts';
import { refuse } from './errors.ts';
import { type ModelConfig, readModelConfig } from './model/config.ts';
import { createParameterLayout } from './model/parameters.ts';
import { readOrInitializeWeights } from './model/weights-file.ts';
import type { TrainerCore } from './trainer-core.ts';
import { createEventRouter, createSamplerClient } from './worker/sampler-client.ts';
import type { Thread } from './worker/thread.ts';
import { startThread } from './worker/thread.ts';

const defaultSlots = 64;
const maxSlots = 1024;

/**
 * Creates the embedded policy from a model directory: a sampler and a trainer, each on its own thread. Refuses a bad directory
 * before any thread starts.
 */
export async function createPolicyCore(options: PolicyCoreOptions): Promise<PolicyCore> {
  const sampling = createSamplingCore(options);
  const config = readModelConfig(options.modelDir);
  const { contextLength } = sampling.model;
  const trainerThread = startThread('trainer-thread', { config, contextLength }, () => {});
  return {
    ...sampling,
    trainer: createTrainerClient(trainerThread),
    crashed: Promise.race([sampling.crashed, trainerThread.crashed]),
    async close() {
      await Promise.all([sampling.close(), trainerThread.close()]);
    },
  };
}

/** Creates a sampler alone. Refuses a bad directory before its thread starts. */
export function createSamplingCore(options: PolicyCoreOptions): SamplingCore {
  const { modelDir, slots = defaultSlots, version = '0' } = options;
  const config = readModelConfig(modelDir);
  const { contextLength = config.maxPositions } = options;
  checkLimit('contextLength', contextLength, 2, config.maxPositions);
  checkLimit('slots', slots, 1, maxSlots);
  const layout = createParameterLayout(config);
  const weights = readOrInitializeWeights(config, layout, modelDir);

  const router = createEventRouter();
  const samplerData = { config, contextLength, slots, weights, version };
  const samplerThread = startThread('sampler-thread', samplerData, router.route);
  const sampler = createSamplerClient(samplerThread, router);
  return {
    model: describeModel(config, contextLength, layout.count),
    sampler,
    crashed: samplerThread.crashed,
    async close() {
      await sampler.abort('all').catch(() => 0); // refused only by a thread that has ended: then nothing runs
      await samplerThread.close();
    },
  };
}

function checkLimit(field: string, value: number, from: number, to: number): void {
  if (Number.isInteger(value) && value >= from && value <= to) return;
  throw refuse('invalid-request', field, `an integer from ${from} to ${to}`, value);
}

function describeModel(config: ModelConfig, contextLength: number, parameterCount: number): ModelDescription {
  const { vocabSize, hiddenSize, layers, heads, intermediateSize } = config;
  return { vocabSize, hiddenSize, layers, heads, intermediateSize, contextLength, parameterCount };
}

type Result<Name extends keyof TrainerCore> = Awaited<ReturnType<TrainerCore[Name]>>;

/** Creates the trainer as the main thread sees it. */
function createTrainerClient({ call }: Thread): TrainerCore {
  // trainer-thread.ts replies with the results of TrainerCore's methods of the same names.
  return {
    createModel: async (...args) => (await call('createModel', ...args)) as Result<'createModel'>,
    forwardBackward: async (...args) => (await call('forwardBackward', ...args)) as Result<'forwardBackward'>,
    optimStep: async (...args) => (await call('optimStep', ...args)) as Result<'optimStep'>,
    save: async (...args) => (await call('save', ...args)) as Result<'save'>,
    load: async (...args) => (await call('load', ...args)) as Result<'load'>,
    unload: async (...args) => (await call('unload', ...args)) as Result<'unload'>,
    status: async (...args) => (await call('status', ...args)) as Result<'status'>,
    models: async () => (await call('models')) as Result<'models'>,
  };
}
