import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PolicyError, refuse } from '../errors.ts';
import type { ModelConfig } from './config.ts';
import { initializeWeights } from './initialize.ts';
import { firstNonFinite, type ParameterLayout } from './parameters.ts';
import { decodeTensors, encodeTensors, type TensorFile } from './safetensors.ts';

/** A model's weights as model.safetensors, checked tensor by tensor against the architecture. */

export const weightsFile = 'model.safetensors';

export function encodeWeights(
  layout: ParameterLayout,
  weights: Float32Array,
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  return encodeTensors(splitVector(layout, weights), metadata);
}

/** Reads a directory's model.safetensors, or the file itself. */
export function readWeights(layout: ParameterLayout, path: string): Float32Array {
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, weightsFile) : path;
  return joinVector(layout, readTensorFile(file), file);
}

/** The directory's weights, or freshly initialised ones where it has no weights file. */
export function readOrInitializeWeights(
  config: ModelConfig,
  layout: ParameterLayout,
  modelDir: string,
  seed: number = config.seed,
): Float32Array {
  if (existsSync(join(modelDir, weightsFile))) return readWeights(layout, modelDir);
  return initializeWeights(layout, seed);
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

/** One tensor per parameter, as views of the flat vector. */
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
