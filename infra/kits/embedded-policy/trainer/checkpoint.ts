import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { z } from 'zod';
import { PolicyError, refuse } from '../errors.ts';
import { writeDirectoryAtomically } from '../model/atomic-directory.ts';
import { checksumOf, type ParameterLayout } from '../model/parameters.ts';
import { encodeTensors } from '../model/safetensors.ts';
import {
  encodeWeights,
  joinVector,
  readTensorFile,
  readWeights,
  splitVector,
  weightsFile,
} from '../model/weights-file.ts';
import type { ReceivedDigest } from '../trainer-core.ts';
import type { AdamState } from './adamw.ts';

// A trained model on disk: a model directory like the one it came from (config.json, tokenizer files, model.safetensors) plus,
// to continue training, optimizer.safetensors (both Adam moments, step, seed, received digests).

const optimizerFile = 'optimizer.safetensors';
/** Extensions of a model directory's other files: configuration, tokenizer, chat template. */
const companionExtensions = ['.json', '.jinja', '.txt', '.model'];

export interface TrainingState extends AdamState {
  readonly step: number;
  /** Seed of the initial weights; training itself draws no random numbers. */
  readonly seed: number;
  readonly received: readonly ReceivedDigest[];
}

const receivedSchema = z.array(
  z.strictObject({ kind: z.enum(['forward_backward', 'optim_step']), step: z.int(), digest: z.string() }),
);
const metadataSchema = z.object({
  step: z.string().regex(/^\d+$/).transform(Number),
  seed: z.string().regex(/^\d+$/).transform(Number),
  weights_sha256: z.string(),
  received: z.string(),
});

export function writeCheckpoint(
  dir: string,
  layout: ParameterLayout,
  state: TrainingState,
  { baseDir, optimizer }: { readonly baseDir: string; readonly optimizer: boolean },
): { readonly bytes: number; readonly checksum: string } {
  const checksum = checksumOf(state.weights);
  const files = new Map<string, Uint8Array>();
  for (const entry of readdirSync(baseDir, { withFileTypes: true })) {
    const isCompanion = entry.isFile() && companionExtensions.includes(extname(entry.name));
    if (isCompanion) files.set(entry.name, readFileSync(join(baseDir, entry.name)));
  }
  files.set(weightsFile, encodeWeights(layout, state.weights, { step: String(state.step), sha256: checksum }));
  if (optimizer) files.set(optimizerFile, encodeOptimizer(layout, state, checksum));
  return { bytes: writeDirectoryAtomically(dir, files), checksum };
}

function encodeOptimizer(layout: ParameterLayout, state: TrainingState, checksum: string): Uint8Array {
  const { moment1, moment2, step, seed } = state;
  // Requests after the last step are in a gradient that is not saved; they will be sent again.
  const received = state.received.filter((entry) => entry.step < step);
  return encodeTensors([...splitVector(layout, moment1, 'moment1.'), ...splitVector(layout, moment2, 'moment2.')], {
    step: String(step),
    seed: String(seed),
    weights_sha256: checksum,
    received: JSON.stringify(received),
  });
}

/** Reads weights and optimizer state; refuses a pair that was not saved together. */
export function readCheckpoint(dir: string, layout: ParameterLayout): TrainingState {
  const weights = readWeights(layout, dir);
  const path = join(dir, optimizerFile);
  const file = readTensorFile(path);
  const metadata = metadataSchema.safeParse(file.metadata);
  if (!metadata.success) throw unreadable(path, metadata.error);
  const { step, seed, weights_sha256, received } = metadata.data;
  const checksum = checksumOf(weights);
  if (weights_sha256 !== checksum) {
    throw refuse('invalid-checkpoint', path, `the optimizer state of weights ${checksum}`, weights_sha256);
  }
  const moment1 = joinVector(layout, file, path, 'moment1.');
  const moment2 = joinVector(layout, file, path, 'moment2.');
  return { weights, moment1, moment2, step, seed, received: parseReceived(received, path) };
}

function parseReceived(text: string, path: string): readonly ReceivedDigest[] {
  try {
    return receivedSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

function unreadable(path: string, cause: unknown): PolicyError {
  const message = `${path}: the metadata is not what save() writes; load without optimizer instead`;
  return new PolicyError('invalid-checkpoint', message, { field: path }, { cause });
}
