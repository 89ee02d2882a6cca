import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PolicyError, refuse } from '../errors.ts';
import type { ModelConfig } from './config.ts';
import { firstNonFinite, type ParameterLayout } from './parameters.ts';
import { createRandom } from './random.ts';
import { decodeTensors, encodeTensors, type TensorFile } from './safetensors.ts';

// A model's weights: as model.safetensors, checked tensor by tensor against the architecture, or initial ones.

export const weightsFile = 'model.safetensors';

export function encodeWeights(
  layout: ParameterLayout,
  weights: Float32Array,
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  return encodeTensors(splitVector(layout, weights), metadata);
}

/** Reads model.safetensors from a directory, or a file itself. */
export function readWeights(layout: ParameterLayout, path: string): Float32Array {
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, weightsFile) : path;
  return joinVector(layout, readTensorFile(file), file);
}

/** Reads the weights of a directory, or initialises them if it has no weights file. */
export function readOrInitializeWeights(
  config: ModelConfig,
  layout: ParameterLayout,
  modelDir: string,
  seed: number = config.seed,
): Float32Array {
  if (existsSync(join(modelDir, weightsFile))) return readWeights(layout, modelDir);
  return initializeWeights(layout, seed);
}

/** Returns initial weights: the same bits for the same architecture and seed. */
export function initializeWeights(layout: ParameterLayout, seed: number): Float32Array {
  const random = createRandom(seed);
  const weights = new Float32Array(layout.count);
  for (const { offset, count, initial } of layout.all) {
    for (let i = offset; i < offset + count; i++) {
      weights[i] = initial.kind === 'ones' ? 1 : initial.deviation * random.normal();
    }
  }
  return weights;
}

export function readTensorFile(path: string): TensorFile {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const message = `${path}: expected a readable safetensors file; name a directory that save() wrote`;
    throw new PolicyError('invalid-checkpoint', message, { field: path }, { cause });
  }
  return decodeTensors(bytes, path);
}

/** Returns one tensor per parameter, as views of the flat vector. */
export function splitVector(layout: ParameterLayout, vector: Float32Array, prefix = '') {
  return layout.all.map(({ name, shape, offset, count }) => ({
    name: prefix + name,
    shape,
    values: vector.subarray(offset, offset + count),
  }));
}

export function joinVector(layout: ParameterLayout, file: TensorFile, source: string, prefix = ''): Float32Array {
  const vector = new Float32Array(layout.count);
  for (const { name, shape, offset } of layout.all) {
    const field = `${source} ${prefix}${name}`;
    const tensor = file.tensors.get(prefix + name);
    if (tensor === undefined) throw refuse('invalid-checkpoint', field, `a tensor [${shape}]`, 'none');
    if (String(tensor.shape) !== String(shape)) {
      throw refuse('invalid-checkpoint', field, `shape [${shape}]`, `[${tensor.shape}]; another architecture`);
    }
    const bad = firstNonFinite(tensor.values);
    if (bad !== -1) throw refuse('invalid-checkpoint', `${field}[${bad}]`, 'a finite number', tensor.values[bad]);
    vector.set(tensor.values, offset);
  }
  return vector;
}
