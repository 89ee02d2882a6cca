import type { z } from 'zod';
import {
  type adamParams,
  type createModelRequest,
  encodeOutput,
  type WireDatum,
  type WireForwardBackward,
} from '../../../tinker-wire/index.ts';
import { findLoss, resolveLossConfig } from '../../losses/registry.ts';
import type { Datum, Metrics, TrainerCore } from '../../trainer-core.ts';
import { type CheckpointAddress, type ModelInfo, type ServerDirectories, writeAtomically } from '../directories.ts';
import type { FutureResult } from './futures.ts';
import type { ReceivedEntry, ReceivedLog } from './received.ts';
import { bytesResult, jsonResult, toResult } from './results.ts';

type CreateModelBody = z.output<typeof createModelRequest>;
type AdamParams = z.output<typeof adamParams>;

/** The weights that a model starts with. */
export interface WeightsToLoad {
  readonly modelId: string;
  readonly sequence: number | null;
  /** The checkpoint's tinker path. */
  readonly path: string;
  readonly directory: string;
  readonly optimizer: boolean;
}

/**
 * Applies the Tinker API's requests to models, one after the other in the order of arrival. Each is in the received log before
 * its result can be read.
 */
export interface Training {
  create(modelId: string, body: CreateModelBody): Promise<FutureResult>;
  /** Creates a model with the weights of a checkpoint, or none if they cannot be loaded. */
  createFrom(weights: WeightsToLoad, info: ModelInfo): Promise<FutureResult>;
  forwardBackward(request: WireForwardBackward): Promise<FutureResult>;
  optimStep(modelId: string, sequence: number | null, adam: AdamParams): Promise<FutureResult>;
  save(address: CheckpointAddress, sequence: number | null, body: unknown): Promise<FutureResult>;
  load(weights: WeightsToLoad): Promise<FutureResult>;
  unload(modelId: string): Promise<FutureResult>;
}

export interface TrainingDependencies {
  readonly trainer: TrainerCore;
  readonly directories: ServerDirectories;
  readonly received: ReceivedLog;
  readonly modelDir: string;
}

export function createTraining(dependencies: TrainingDependencies): Training {
  let last: Promise<unknown> = Promise.resolve();
  const inOrder = (modelId: string, work: () => Promise<FutureResult>): Promise<FutureResult> => {
    const next = last.then(() => toResult(modelId, work));
    last = next;
    return next;
  };
  return {
    create: (modelId, body) => inOrder(modelId, () => create(dependencies, modelId, body)),
    createFrom: (weights, info) => inOrder(weights.modelId, () => createFrom(dependencies, weights, info)),
    forwardBackward: (request) => inOrder(request.modelId, () => forwardBackward(dependencies, request)),
    optimStep: (modelId, sequence, adam) =>
      inOrder(modelId, () => optimStep(dependencies, { modelId, sequence, adam })),
    save: (address, sequence, body) => inOrder(address.modelId, () => save(dependencies, address, sequence, body)),
    load: (weights) => inOrder(weights.modelId, () => load(dependencies, weights)),
    unload: (modelId) => inOrder(modelId, () => unload(dependencies, modelId)),
  };
}

async function create(
  { trainer, directories, received, modelDir }: TrainingDependencies,
  modelId: string,
  body: CreateModelBody,
): Promise<FutureResult> {
  const seed = body.lora_config?.seed ?? undefined;
  const made = await trainer.createModel(modelId, { baseDir: modelDir, seed });
  const info = { model_id: modelId, base_model: body.base_model, lora_config: body.lora_config ?? { rank: 0 } };
  await writeAtomically(directories.modelFile(modelId), JSON.stringify(info));
  await received.append(entryOf('create_model', modelId, 0, { checksum: made.checksum }));
  return jsonResult({ type: 'create_model', ...info });
}

async function createFrom(
  dependencies: TrainingDependencies,
  weights: WeightsToLoad,
  info: ModelInfo,
): Promise<FutureResult> {
  const { trainer, directories, modelDir } = dependencies;
  const { modelId } = weights;
  await trainer.createModel(modelId, { baseDir: modelDir });
  try {
    await writeAtomically(directories.modelFile(modelId), JSON.stringify({ ...info, model_id: modelId }));
    return await load(dependencies, weights);
  } catch (error) {
    await trainer.unload(modelId);
    throw error;
  }
}

async function forwardBackward(
  { trainer, received }: TrainingDependencies,
  { modelId, sequence, data, loss, lossConfig, forwardOnly }: WireForwardBackward,
): Promise<FutureResult> {
  const { step } = await trainer.status(modelId);
  const result = await trainer.forwardBackward(modelId, data.map(datumOf), loss, { lossConfig, forwardOnly });
  if (!forwardOnly) {
    await received.append(entryOf('forward_backward', modelId, step, { sequence, digest: result.digest }));
  }
  const outputs = result.outputs.map(({ logprobs, elementwiseLoss }) => ({
    logprobs: Array.from(logprobs),
    elementwise_loss: Array.from(elementwiseLoss),
  }));
  return bytesResult(encodeOutput({ type: 'scalar', outputs, metrics: reducible(result.metrics) }));
}

async function optimStep(
  { trainer, received }: TrainingDependencies,
  {
    modelId,
    sequence,
    adam,
  }: { readonly modelId: string; readonly sequence: number | null; readonly adam: AdamParams },
): Promise<FutureResult> {
  const { step, metrics, checksum } = await trainer.optimStep(modelId, {
    learningRate: adam.learning_rate,
    beta1: adam.beta1,
    beta2: adam.beta2,
    eps: adam.eps,
    weightDecay: adam.weight_decay,
    gradClipNorm: adam.grad_clip_norm,
  });
  const { received: digests } = await trainer.status(modelId);
  const digest = digests.at(-1)?.digest ?? null;
  await received.append(entryOf('optim_step', modelId, step, { sequence, digest, checksum }));
  return jsonResult({ type: 'optim_step', metrics: { ...metrics, step }, checksum });
}

async function save(
  { trainer, directories, received }: TrainingDependencies,
  address: CheckpointAddress,
  sequence: number | null,
  body: unknown,
): Promise<FutureResult> {
  const { modelId, kind } = address;
  const path = directories.checkpoint(address);
  const { step, checksum } = await trainer.save(modelId, path, { optimizer: kind === 'weights' });
  await received.append(entryOf('save_weights', modelId, step, { sequence, checksum, path }));
  return jsonResult(body);
}

async function load(
  { trainer, received }: TrainingDependencies,
  { modelId, sequence, path, directory, optimizer }: WeightsToLoad,
): Promise<FutureResult> {
  const { step, checksum } = await trainer.load(modelId, directory, { optimizer });
  await received.append(entryOf('load_weights', modelId, step, { sequence, checksum, path }));
  return jsonResult({ type: 'load_weights', path });
}

async function unload({ trainer, received }: TrainingDependencies, modelId: string): Promise<FutureResult> {
  const { step } = await trainer.status(modelId);
  await trainer.unload(modelId);
  await received.append(entryOf('unload_model', modelId, step, {}));
  return jsonResult({ type: 'unload_model', model_id: modelId, status: 'unloaded' });
}

function entryOf(
  kind: ReceivedEntry['kind'],
  modelId: string,
  step: number,
  rest: Partial<Pick<ReceivedEntry, 'sequence' | 'digest' | 'checksum' | 'path'>>,
): Omit<ReceivedEntry, 'at'> {
  return { kind, modelId, step, sequence: null, digest: null, checksum: null, path: null, ...rest };
}

/** Throws a PolicyError for an unknown loss or setting, before the request is accepted. */
export function checkLoss({ loss, lossConfig }: WireForwardBackward): void {
  resolveLossConfig(findLoss(loss), lossConfig);
}

/** The core's names of a datum's fields, by their names on the wire. */
const fields = {
  weights: 'weights',
  logprobs: 'logprobs',
  advantages: 'advantages',
  reference_logprobs: 'referenceLogprobs',
} as const;

function datumOf({ tokens, inputs }: WireDatum): Datum {
  const given = Object.entries(fields).flatMap(([wire, name]) => {
    const data = inputs[wire]?.data;
    return data === undefined ? [] : [[name, data] as const];
  });
  // SDKs omit the weights of cross_entropy, which means all ones.
  const weights = tokens.map(() => 1);
  return { weights, ...Object.fromEntries(given), inputTokens: tokens, targetTokens: inputs.target_tokens?.data ?? [] };
}

/**
 * Names on the wire of metrics without a reduction: the SDK merges metrics by the suffix after the colon, and fails without
 * one.
 */
const reducedNames: Readonly<Record<string, string>> = {
  tokens: 'tokens:sum',
  weighted_tokens: 'weighted_tokens:sum',
  datums: 'datums:sum',
  clip_fraction: 'clip_fraction:mean',
  'kl:sampler': 'kl_sampler:mean',
  'kl:reference': 'kl_reference:mean',
};

function reducible(metrics: Metrics): Metrics {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [reducedNames[name] ?? name, value]));
}
