import { log } from '@temporalio/activity';
import { forwardBackwardInParts, requestSizes } from '../../infra/trainer/requests.ts';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';
import { warmUpName } from '../../workflows/contracts/ids.ts';
import type { WarmUp } from '../../workflows/contracts/run.ts';
import type { PrepareTrainer, WarmUpProgress } from '../interfaces/trainer.ts';
import type { TrainerContext } from './dependencies.ts';
import { adam, doesNotLoad, requireFinite } from './model.ts';
import { unloadAllBut } from './unload.ts';

export interface PreparationContext
  extends Pick<TrainerContext, 'trainer' | 'journal' | 'signal' | 'requestTokens' | 'demonstrations'> {
  readonly report: (progress: WarmUpProgress) => void;
  /** The shortest time between two checkpoints. A trainer that is killed has to repeat the steps since the last one. */
  readonly checkpointAfterMs: number;
}

const optimizer = { ...adam, eps: 1e-8, gradClipNorm: 1 } as const;

/** A checkpoint is made after this many times the duration of the last one, so that all together take few of the time. */
const checkpointShare = 20;
/** The number of checkpoints that are kept: the save of the last one may be incomplete. */
const keptCheckpoints = 2;

/** Returns the run's model after its warm-up, which continues from what was done of it. */
export async function warmedModel(context: PreparationContext, input: PrepareTrainer): Promise<string> {
  const { trainer, journal, signal, report } = context;
  const modelId = await modelToWarm(context, input);
  const { warmUp: settings } = input;
  if (settings === null) return modelId;
  const { steps } = settings;
  const examplesOf = createExamples(context, input, settings);
  const checkpoint = createCheckpoints(context, input.runKey);
  let data = await examplesOf(journal.state.warmUpSteps);
  for (let step = journal.state.warmUpSteps; step < steps; step += 1) {
    // Ids and requests follow from the journal alone, so a retry after a crash repeats exactly the step that was under way.
    const sizes = requestSizes(data, journal.state.warmUpRequestTokens);
    const sequence = (journal.state.sequences[modelId] ?? 0) + 1;
    const request = { modelId, sequence, data, loss: 'cross_entropy' } as const;
    // The next examples are rendered while the trainer works on these.
    const [forward, next] = await Promise.all([
      forwardBackwardInParts(trainer, request, sizes, signal),
      examplesOf(step + 1),
    ]);
    data = next;
    requireFinite(forward.metrics);
    const learningRate = learningRateAt(settings, step + 1, steps);
    const optimSequence = sequence + sizes.length;
    requireFinite(await trainer.optimStep({ modelId, sequence: optimSequence, learningRate, ...optimizer }, signal));
    await journal.write({
      warmUpSteps: step + 1,
      sequences: { ...journal.state.sequences, [modelId]: optimSequence },
      prepareMetrics: { warmUpSteps: step + 1, ...forward.metrics },
    });
    report({ warmUpStep: step + 1, of: steps });
    if ((step + 1) % 25 === 0) log.info('warm-up', { step: step + 1, of: steps, ...forward.metrics });
    if (step + 1 < steps) await checkpoint(modelId);
  }
  return modelId;
}

function createExamples(
  { demonstrations }: PreparationContext,
  { tasks, agent, seed }: PrepareTrainer,
  { examplesPerStep: count, rightShare, traces }: WarmUp,
) {
  return (step: number) => demonstrations({ tasks, agent, seed, step, count, rightShare, traces: traces ?? null });
}

/** Returns the live model, or a new one with the last checkpoint of the warm-up that loads. */
async function modelToWarm(context: PreparationContext, input: PrepareTrainer, lost?: string): Promise<string> {
  const { trainer, journal, signal, requestTokens } = context;
  const { training, seed, pool } = input;
  if (journal.state.modelId !== null) return journal.state.modelId;
  await unloadAllBut(context, []);
  const modelId = await trainer.createModel({ loraRank: training.loraRank, seed }, signal);
  await journal.write({ sequences: { ...journal.state.sequences, [modelId]: 0 }, pool });
  const from = journal.state.warmUpCheckpoints.at(-1);
  const loaded = from === undefined || (await loads(context, modelId, from, lost === from.path));
  if (!loaded) return modelToWarm(context, input, from.path);
  await journal.write({ modelId, warmUpSteps: from?.step ?? 0, warmUpRequestTokens: requestTokens });
  return modelId;
}

/**
 * Loads a checkpoint into a new model. Returns false if the caller has to try again with another model. If the checkpoint itself
 * does not load, the journal has forgotten it by then. `lostBefore` says that an earlier model was reported as lost at it.
 */
async function loads(
  { trainer, journal, signal }: PreparationContext,
  modelId: string,
  { step, path }: { readonly step: number; readonly path: string },
  lostBefore: boolean,
): Promise<boolean> {
  try {
    await trainer.load(modelId, { path, optimizer: true }, await journal.nextSequence(modelId), signal);
    return true;
  } catch (error) {
    if (!doesNotLoad(error)) throw error;
    // A trainer that was killed in the meantime may load it afterwards. A server may say the same of a checkpoint that is lost.
    if (error.type === 'TrainerLostModel' && !lostBefore) return false;
    log.warn('a checkpoint of the warm-up does not load; temper continues from the one before it', {
      step,
      error: error.message,
    });
    await journal.write({ warmUpCheckpoints: journal.state.warmUpCheckpoints.slice(0, -1) });
    return false;
  }
}

/** Returns a function that saves a checkpoint of the warm-up where one is due. */
function createCheckpoints(context: PreparationContext, runKey: string): (modelId: string) => Promise<void> {
  const { trainer, journal, signal, checkpointAfterMs } = context;
  let dueAtMs = performance.now() + checkpointAfterMs;
  return async (modelId) => {
    const beganMs = performance.now();
    if (beganMs < dueAtMs) return;
    const { warmUpSteps: step } = journal.state;
    const path = await trainer.save(modelId, warmUpName(runKey, step), await journal.nextSequence(modelId), signal);
    await journal.write({ warmUpCheckpoints: [...journal.state.warmUpCheckpoints, { step, path }] });
    await removeWarmUpCheckpoints(context, keptCheckpoints);
    const endedMs = performance.now();
    dueAtMs = endedMs + Math.max(checkpointAfterMs, checkpointShare * (endedMs - beganMs));
  };
}

/** Removes the checkpoints of the warm-up but the newest. One that can't be removed is left to retention. */
export async function removeWarmUpCheckpoints(
  { trainer, journal, signal }: Pick<PreparationContext, 'trainer' | 'journal' | 'signal'>,
  kept: number,
): Promise<void> {
  const all = journal.state.warmUpCheckpoints;
  const old = all.slice(0, Math.max(0, all.length - kept));
  if (old.length === 0) return;
  await journal.write({ warmUpCheckpoints: all.slice(old.length) });
  for (const { step, path } of old) {
    try {
      await trainer.remove(path, signal);
    } catch (error) {
      signal.throwIfAborted();
      log.warn('an old checkpoint of the warm-up could not be removed', { step, error: String(error) });
    }
  }
}
