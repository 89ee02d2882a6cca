import {
  type Gemm,
  type Kernels,
  type RmsNorm,
  type RmsNormBackward,
  rmsEpsilon,
  type Softmax,
} from '../../../../../infra/kits/embedded-policy/kernels/kernels.ts';

/**
 * The kernels in plain TypeScript, with which those in WebAssembly are compared: sums run in float64, in index order, and are
 * rounded once.
 */

export function createJsKernels(floats: number): Kernels {
  const f32 = new Float32Array(floats);
  return {
    f32,
    gemm: (p) => gemm(f32, p),
    transpose({ target, targetRow, source, sourceRow, rows, columns }) {
      for (let r = 0; r < rows; r++) {
        for (let c = 0; c < columns; c++) f32[target + c * targetRow + r] = at(f32, source + r * sourceRow + c);
      }
    },
    rmsNorm: (p) => rmsNorm(f32, p),
    rmsNormBackward: (p) => rmsNormBackward(f32, p),
    silu(y, x, count) {
      for (let i = 0; i < count; i++) f32[y + i] = at(f32, x + i) / (1 + Math.exp(-at(f32, x + i)));
    },
    siluBackward(dx, x, count) {
      for (let i = 0; i < count; i++) {
        const value = at(f32, x + i);
        const sigmoid = 1 / (1 + Math.exp(-value));
        f32[dx + i] = at(f32, dx + i) * sigmoid * (1 + value * (1 - sigmoid));
      }
    },
    softmax: (p) => softmax(f32, p),
    softmaxBackward({ y, dy, row, rows, width, scale }) {
      for (let start = 0; start < rows * row; start += row) {
        let sum = 0;
        for (let i = start; i < start + width; i++) sum += at(f32, y + i) * at(f32, dy + i);
        for (let i = start; i < start + width; i++) f32[dy + i] = at(f32, y + i) * (at(f32, dy + i) - sum) * scale;
      }
    },
  };
}

/** Reads an element that always exists, since kernels are called with offsets inside the arena; the compiler cannot know that. */
function at(f32: Float32Array, index: number): number {
  return f32[index] as number;
}

/** Multiplies in tiles of 2 rows x 4 columns, which keep eight sums in registers. */
function gemm(f32: Float32Array, p: Gemm): void {
  const pairs = p.m & ~1;
  for (let i = 0; i < pairs; i += 2) {
    for (let j = 0; j < p.n; j += 4) tile2(f32, p, i, j);
  }
  for (let i = pairs; i < p.m; i++) {
    for (let j = 0; j < p.n; j += 4) tile1(f32, p, i, j);
  }
}

/** Computes the elements of C at rows i and i + 1, columns j to j + 3. */
function tile2(f32: Float32Array, p: Gemm, i: number, j: number): void {
  const { aRow, aColumn, bRow, k } = p;
  let s00 = 0;
  let s01 = 0;
  let s02 = 0;
  let s03 = 0;
  let s10 = 0;
  let s11 = 0;
  let s12 = 0;
  let s13 = 0;
  let a = p.a + i * p.aRow;
  let b = p.b + j;
  for (let l = 0; l < k; l++) {
    const a0 = at(f32, a);
    const a1 = at(f32, a + aRow);
    const b0 = at(f32, b);
    const b1 = at(f32, b + 1);
    const b2 = at(f32, b + 2);
    const b3 = at(f32, b + 3);
    s00 += a0 * b0;
    s01 += a0 * b1;
    s02 += a0 * b2;
    s03 += a0 * b3;
    s10 += a1 * b0;
    s11 += a1 * b1;
    s12 += a1 * b2;
    s13 += a1 * b3;
    a += aColumn;
    b += bRow;
  }
  const c = p.c + i * p.cRow + j;
  const below = c + p.cRow;
  store(f32, c, s00, p.accumulate);
  store(f32, c + 1, s01, p.accumulate);
  store(f32, c + 2, s02, p.accumulate);
  store(f32, c + 3, s03, p.accumulate);
  store(f32, below, s10, p.accumulate);
  store(f32, below + 1, s11, p.accumulate);
  store(f32, below + 2, s12, p.accumulate);
  store(f32, below + 3, s13, p.accumulate);
}

/** Computes the elements of C at row i, columns j to j + 3. */
function tile1(f32: Float32Array, p: Gemm, i: number, j: number): void {
  const { aColumn, bRow, k } = p;
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  let a = p.a + i * p.aRow;
  let b = p.b + j;
  for (let l = 0; l < k; l++) {
    const a0 = at(f32, a);
    s0 += a0 * at(f32, b);
    s1 += a0 * at(f32, b + 1);
    s2 += a0 * at(f32, b + 2);
    s3 += a0 * at(f32, b + 3);
    a += aColumn;
    b += bRow;
  }
  const c = p.c + i * p.cRow + j;
  store(f32, c, s0, p.accumulate);
  store(f32, c + 1, s1, p.accumulate);
  store(f32, c + 2, s2, p.accumulate);
  store(f32, c + 3, s3, p.accumulate);
}

function store(f32: Float32Array, index: number, value: number, accumulate: boolean): void {
  f32[index] = accumulate ? at(f32, index) + value : value;
}

function rmsNorm(f32: Float32Array, { y, inverseRms, x, gain, rows, width }: RmsNorm): void {
  for (let r = 0; r < rows; r++) {
    const start = r * width;
    let squares = 0;
    for (let i = 0; i < width; i++) squares += at(f32, x + start + i) ** 2;
    f32[inverseRms + r] = 1 / Math.sqrt(squares / width + rmsEpsilon);
    const inverse = at(f32, inverseRms + r);
    for (let i = 0; i < width; i++) f32[y + start + i] = at(f32, x + start + i) * inverse * at(f32, gain + i);
  }
}

function rmsNormBackward(f32: Float32Array, p: RmsNormBackward): void {
  for (let r = 0; r < p.rows; r++) {
    const x = p.x + r * p.width;
    const dy = p.dy + r * p.width;
    const dx = p.dx + r * p.width;
    const inverse = at(f32, p.inverseRms + r);
    let dot = 0;
    for (let i = 0; i < p.width; i++) dot += at(f32, dy + i) * at(f32, p.gain + i) * at(f32, x + i);
    const pull = (dot * inverse ** 3) / p.width;
    for (let i = 0; i < p.width; i++) {
      const slope = at(f32, dy + i) * inverse;
      f32[dx + i] = at(f32, dx + i) + slope * at(f32, p.gain + i) - pull * at(f32, x + i);
      f32[p.dGain + i] = at(f32, p.dGain + i) + slope * at(f32, x + i);
    }
  }
}

function softmax(f32: Float32Array, p: Softmax): void {
  for (let r = 0; r < p.rows; r++) {
    const start = p.x + r * p.row;
    const end = start + Math.min(p.width, p.firstValid + r * p.validStep);
    let maximum = Number.NEGATIVE_INFINITY;
    for (let i = start; i < end; i++) {
      const scaled = Math.fround(at(f32, i) * p.scale);
      f32[i] = scaled;
      if (scaled > maximum) maximum = scaled;
    }
    let sum = 0;
    for (let i = start; i < end; i++) {
      f32[i] = Math.exp(at(f32, i) - maximum);
      sum += at(f32, i);
    }
    for (let i = start; i < end; i++) f32[i] = at(f32, i) / sum;
    f32.fill(0, end, start + p.width);
    f32[p.stats + 2 * r] = maximum;
    f32[p.stats + 2 * r + 1] = sum;
  }
}
