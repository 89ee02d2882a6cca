/**
 * The arithmetic of the transformer over one flat float32 arena:
 * - Offsets, lengths and strides count floats of `f32`. Column counts marked x4 in a comment are multiples of 4.
 * - Each output element is computed by one fixed sequence of operations that does not depend on the number of rows, on tiling
 *   or on padding. This makes sampler and trainer logprobs bit-identical.
 */

export interface Kernels {
  readonly f32: Float32Array;

  /**
   * C[m,n] = A[m,k] B[k,n], or C += A B. Element A[i,l] lies at a + i * aRow + l * aColumn, so that swapping the two strides
   * multiplies by A transposed. B and C have unit column stride. n: x4.
   */
  gemm(p: Gemm): void;
  /** target[c,r] = source[r,c] */
  transpose(p: Transpose): void;
  /** y = x / rms(x) * gain, rows of `width` (x4); writes 1 / rms of each row to inverseRms */
  rmsNorm(p: RmsNorm): void;
  /** dx += and dGain += the gradient of rmsNorm */
  rmsNormBackward(p: RmsNormBackward): void;
  /** Computes y = x * sigmoid(x). `count` is a multiple of 4. */
  silu(y: number, x: number, count: number): void;
  /** Computes dx *= silu'(x). `count` is a multiple of 4. */
  siluBackward(dx: number, x: number, count: number): void;
  /** row r = softmax(scale * x) over its first valid columns, in place; zero in the rest of `width` (x4) */
  softmax(p: Softmax): void;
  /** dy = y * (dy - sum(y * dy)) * scale per row of `width` (x4), in place */
  softmaxBackward(p: SoftmaxBackward): void;
}

export interface Gemm {
  readonly c: number;
  readonly cRow: number;
  readonly a: number;
  readonly aRow: number;
  readonly aColumn: number;
  readonly b: number;
  readonly bRow: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly accumulate: boolean;
}

export interface Transpose {
  readonly target: number;
  readonly targetRow: number;
  readonly source: number;
  readonly sourceRow: number;
  /** Rows and columns of the source. */
  readonly rows: number;
  readonly columns: number;
}

export interface RmsNorm {
  readonly y: number;
  readonly inverseRms: number;
  readonly x: number;
  readonly gain: number;
  readonly rows: number;
  readonly width: number;
}

export interface RmsNormBackward {
  readonly dx: number;
  readonly dGain: number;
  readonly dy: number;
  readonly x: number;
  readonly inverseRms: number;
  readonly gain: number;
  readonly rows: number;
  readonly width: number;
}

export interface Softmax {
  readonly x: number;
  readonly row: number;
  readonly rows: number;
  readonly width: number;
  /** Row r has min(width, firstValid + r * validStep) valid columns. */
  readonly firstValid: number;
  readonly validStep: number;
  readonly scale: number;
  /** Receives, per row, the maximum of scale * x and the sum of exp(scale * x - maximum). */
  readonly stats: number;
}

export interface SoftmaxBackward {
  readonly y: number;
  readonly dy: number;
  readonly row: number;
  readonly rows: number;
  readonly width: number;
  readonly scale: number;
}

export const rmsEpsilon = 1e-5;
