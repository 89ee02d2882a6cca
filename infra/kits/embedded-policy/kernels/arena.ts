/** Lays out an arena before it exists: a bump allocator that hands out 64-byte aligned offsets, in floats. */
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

/** The next multiple of 4: rows that SIMD kernels touch are padded to it. */
export function roundUp4(count: number): number {
  return (count + 3) & ~3;
}
