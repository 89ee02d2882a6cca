// Conversions between numbers and little-endian bytes, independent of this machine's byte order and of the bytes' alignment.

export function float32Bytes(values: ArrayLike<number>): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  for (let i = 0; i < values.length; i++) bytes.writeFloatLE(values[i] ?? 0, i * 4);
  return bytes;
}

export function int32Bytes(values: ArrayLike<number>): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  for (let i = 0; i < values.length; i++) bytes.writeInt32LE(values[i] ?? 0, i * 4);
  return bytes;
}

export function int64Bytes(values: ArrayLike<number>): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 8);
  for (let i = 0; i < values.length; i++) bytes.writeBigInt64LE(BigInt(values[i] ?? 0), i * 8);
  return bytes;
}

export function readFloat32(given: Uint8Array): number[] {
  const bytes = whole(given, 4);
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}

export function readInt32(given: Uint8Array): number[] {
  const bytes = whole(given, 4);
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readInt32LE(i * 4));
}

export function readInt64(given: Uint8Array): number[] {
  const bytes = whole(given, 8);
  return Array.from({ length: bytes.length / 8 }, (_, i) => Number(bytes.readBigInt64LE(i * 8)));
}

/** Reads bfloat16, the upper half of a float32. */
export function readBfloat16(given: Uint8Array): number[] {
  const bytes = whole(given, 2);
  const widened = Buffer.alloc(bytes.length * 2);
  for (let i = 0; i < bytes.length / 2; i++) bytes.copy(widened, i * 4 + 2, i * 2, i * 2 + 2);
  return readFloat32(widened);
}

function whole(bytes: Uint8Array, size: number): Buffer {
  if (bytes.length % size !== 0) throw new RangeError(`expected a multiple of ${size} bytes, got ${bytes.length}`);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
