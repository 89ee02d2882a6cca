/** The layout of an arena before it exists: a bump allocator of 64-byte aligned offsets, in floats. */
export interface ArenaPlan {
  readonly floats: number;
  take(count: number): number;
}

const alignmentFloats = 16;

export function createArenaPlan(): ArenaPlan {
  let next = 0;
  return {
    get floats() {
      return next;
    },
    take(count) {
      const offset = next;
      next += Math.ceil(count / alignmentFloats) * alignmentFloats;
      return offset;
    },
  };
}

/** Returns the next multiple of 4, to which rows are padded for the SIMD kernels. */
export function roundUp4(count: number): number {
  return (count + 3) & ~3;
}
