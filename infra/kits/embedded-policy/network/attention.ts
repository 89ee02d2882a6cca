import { roundUp4 } from '../kernels/arena.ts';
import type { Kernels } from '../kernels/kernels.ts';

// Causal attention of one head over a block of consecutive query rows: P = softmax(Q K^T / sqrt(w)), O = P V. Keys are
// transposed, [width, positions], so that lanes run over positions and a decode step computes the same products as training.

/** Query rows per block. Keys beyond a block's last row are skipped, which saves nearly half of the work of a long sequence. */
export const attentionBlockRows = 32;

export interface HeadBlock {
  /** Position of the first query row in its sequence. */
  readonly first: number;
  readonly rows: number;
  readonly width: number;
  readonly query: number;
  readonly queryRow: number;
  readonly keysTransposed: number;
  readonly keysRow: number;
  readonly values: number;
  readonly valuesRow: number;
  readonly probabilities: number;
  readonly probabilitiesRow: number;
  readonly output: number;
  readonly outputRow: number;
  /** Scratch space of 2 floats per row. */
  readonly stats: number;
}

export function attendBlock(kernels: Kernels, p: HeadBlock): void {
  const positions = p.first + p.rows;
  const padded = roundUp4(positions);
  const { probabilities: x, probabilitiesRow: row, rows, width } = p;
  kernels.gemm({
    c: x,
    cRow: row,
    a: p.query,
    aRow: p.queryRow,
    aColumn: 1,
    b: p.keysTransposed,
    bRow: p.keysRow,
    m: rows,
    n: padded,
    k: width,
    accumulate: false,
  });
  const scale = 1 / Math.sqrt(width);
  kernels.softmax({ x, row, rows, width: padded, firstValid: p.first + 1, validStep: 1, scale, stats: p.stats });
  kernels.gemm({
    c: p.output,
    cRow: p.outputRow,
    a: x,
    aRow: row,
    aColumn: 1,
    b: p.values,
    bRow: p.valuesRow,
    m: rows,
    n: width,
    k: positions,
    accumulate: false,
  });
}

export interface HeadBlockBackward extends HeadBlock {
  readonly keys: number;
  readonly keysPlainRow: number;
  readonly valuesTransposed: number;
  readonly dOutput: number;
  /** Scratch space of the size of `probabilities`. */
  readonly dScores: number;
  readonly dQuery: number;
  readonly dKeys: number;
  readonly dValues: number;
  readonly dRow: number;
}

/** Sets dQuery of the block; adds to dKeys and dValues. Expects the probabilities of the forward pass. */
export function attendBlockBackward(kernels: Kernels, p: HeadBlockBackward): void {
  const positions = p.first + p.rows;
  const padded = roundUp4(positions);
  const { probabilitiesRow: row, rows, width } = p;
  const output = { a: p.dOutput, aRow: p.outputRow, aColumn: 1 };
  const transposed = { aRow: 1, aColumn: row, m: positions, n: width, k: rows, accumulate: true };
  const gradient = { cRow: p.dRow, bRow: p.outputRow };
  kernels.gemm({
    c: p.dScores,
    cRow: row,
    ...output,
    b: p.valuesTransposed,
    bRow: p.keysRow,
    m: rows,
    n: padded,
    k: width,
    accumulate: false,
  });
  kernels.gemm({ c: p.dValues, ...gradient, a: p.probabilities, b: p.dOutput, ...transposed });
  kernels.softmaxBackward({
    y: p.probabilities,
    dy: p.dScores,
    row,
    rows,
    width: padded,
    scale: 1 / Math.sqrt(width),
  });
  kernels.gemm({
    c: p.dQuery,
    cRow: p.dRow,
    a: p.dScores,
    aRow: row,
    aColumn: 1,
    b: p.keys,
    bRow: p.keysPlainRow,
    m: rows,
    n: width,
    k: positions,
    accumulate: false,
  });
  kernels.gemm({ c: p.dKeys, cRow: p.dRow, a: p.dScores, b: p.query, bRow: p.queryRow, ...transposed });
}
