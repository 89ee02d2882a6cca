import { z } from 'zod';
import { PolicyError } from '../errors.ts';

// The safetensors format, float32 only: u64 header length, JSON header padded with spaces to 8 bytes, raw little-endian data.
// Format: https://github.com/huggingface/safetensors#format

export interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export interface TensorFile {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

const lengthBytes = 8;
const maxHeaderBytes = 100_000_000; // the reference implementation's own limit

const headerSchema = z.record(
  z.string(),
  z.union([
    z.strictObject({
      dtype: z.string(),
      shape: z.array(z.int().nonnegative()),
      data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
    }),
    z.record(z.string(), z.string()),
  ]),
);

export function encodeTensors(tensors: readonly Tensor[], metadata: Readonly<Record<string, string>>): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let next = 0;
  for (const { name, shape, values } of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [next, next + values.byteLength] };
    next += values.byteLength;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const headerBytes = Math.ceil(json.length / 8) * 8;
  const file = new Uint8Array(lengthBytes + headerBytes + next);
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true);
  file.fill(0x20, lengthBytes, lengthBytes + headerBytes).set(json, lengthBytes);
  let position = lengthBytes + headerBytes;
  for (const { values } of tensors) {
    file.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), position);
    position += values.byteLength;
  }
  return file;
}

export function decodeTensors(file: Uint8Array, source: string): TensorFile {
  const header = parseHeader(file, source);
  const data = file.subarray(lengthBytes + header.bytes);
  const tensors = new Map<string, Tensor>();
  let metadata: Readonly<Record<string, string>> = {};
  for (const [name, entry] of Object.entries(header.entries)) {
    if (name === '__metadata__') metadata = entry as Readonly<Record<string, string>>;
    else tensors.set(name, decodeTensor(name, entry, data, source));
  }
  return { tensors, metadata };
}

function parseHeader(file: Uint8Array, source: string) {
  if (file.length < lengthBytes) throw broken(source, 'at least 8 bytes', `${file.length}`);
  const bytes = Number(new DataView(file.buffer, file.byteOffset, file.byteLength).getBigUint64(0, true));
  if (bytes > Math.min(maxHeaderBytes, file.length - lengthBytes)) {
    throw broken(
      source,
      `a header within the file's ${file.length} bytes`,
      `${bytes} header bytes; the file is cut off`,
    );
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(file.subarray(lengthBytes, lengthBytes + bytes));
    return { bytes, entries: headerSchema.parse(JSON.parse(text)) };
  } catch (cause) {
    throw broken(source, 'a safetensors header', 'something else', cause);
  }
}

function decodeTensor(name: string, entry: unknown, data: Uint8Array, source: string): Tensor {
  const { dtype, shape, data_offsets } = entry as { dtype?: string; shape: number[]; data_offsets: [number, number] };
  if (dtype !== 'F32') throw broken(source, `${name} with dtype F32`, dtype ?? 'no dtype');
  const [start, end] = data_offsets;
  const count = shape.reduce((product, size) => product * size, 1);
  if (end - start !== count * 4 || end > data.length) {
    throw broken(
      source,
      `${name} in ${count * 4} of ${data.length} data bytes`,
      `bytes ${start} to ${end}; the file is cut off`,
    );
  }
  const values = new Float32Array(count); // a copy, since a view would need 4-byte alignment
  new Uint8Array(values.buffer).set(data.subarray(start, end));
  return { name, shape, values };
}

function broken(source: string, expected: string, got: string, cause?: unknown): PolicyError {
  const details = { field: source, expected, got };
  return new PolicyError('invalid-checkpoint', `${source}: expected ${expected}, got ${got}`, details, { cause });
}
