import { type Code, emitFunction, type FunctionBuilder, f32x4, i32, type Local, v128 } from './wasm-emitter.ts';

/**
 * Matrix product in WASM SIMD. Lanes run over columns of B, so that each element of C is one chain of multiply and add over k
 * in index order, whatever the tile: 4 rows x 12 columns inside, narrower at the edges.
 */

const floatBytes = 4;
const vectorBytes = 16;
/** The rows of a tile, and the widths in vectors to try in turn. */
const tiles = [
  { rows: 4, widths: [3, 1] },
  { rows: 1, widths: [8, 6, 4, 2, 1] },
] as const;

const gemmParameters = {
  c: 'i32',
  cRow: 'i32',
  a: 'i32',
  aRow: 'i32',
  aColumn: 'i32',
  b: 'i32',
  bRow: 'i32',
  m: 'i32',
  n: 'i32',
  k: 'i32',
  accumulate: 'i32',
} as const;

type Parameters = { readonly [Name in keyof typeof gemmParameters]: Local };

/** Pointers are in bytes, and so are the strides. */
export const gemm = emitFunction('gemm', gemmParameters, (f, p) => {
  const row = f.local('i32', i32.const(0));
  const a = f.local('i32', p.a.get);
  const c = f.local('i32', p.c.get);
  const column = f.local('i32');
  const scratch = tileScratch(f);
  for (const { rows, widths } of tiles) {
    f.while(i32.le(i32.add(row.get, i32.const(rows)), p.m.get), () => {
      column.set(i32.const(0));
      for (const vectors of widths) {
        f.while(i32.le(i32.add(column.get, i32.const(vectors * 4)), p.n.get), () => {
          tile(f, p, scratch, { rows, vectors, a: a.get, c: c.get, column: column.get });
          column.set(i32.add(column.get, i32.const(vectors * 4)));
        });
      }
      row.set(i32.add(row.get, i32.const(rows)));
      a.set(i32.add(a.get, i32.mul(p.aRow.get, i32.const(rows))));
      c.set(i32.add(c.get, i32.mul(p.cRow.get, i32.const(rows))));
    });
  }
});

interface TileScratch {
  readonly aPointers: readonly Local[];
  readonly bPointer: Local;
  readonly cPointer: Local;
  readonly count: Local;
  readonly bVectors: readonly Local[];
  readonly splat: Local;
  readonly sums: readonly Local[];
}

function tileScratch(f: FunctionBuilder): TileScratch {
  const locals = (type: 'i32' | 'v128', count: number): Local[] => Array.from({ length: count }, () => f.local(type));
  const [bPointer, cPointer, count] = [f.local('i32'), f.local('i32'), f.local('i32')];
  const bVectors = locals('v128', 8);
  return {
    aPointers: locals('i32', 4),
    bPointer,
    cPointer,
    count,
    bVectors,
    splat: f.local('v128'),
    sums: locals('v128', 12),
  };
}

interface Tile {
  readonly rows: number;
  readonly vectors: number;
  readonly a: Code;
  readonly c: Code;
  readonly column: Code;
}

function tile(f: FunctionBuilder, p: Parameters, scratch: TileScratch, shape: Tile): void {
  const columnBytes = i32.mul(shape.column, i32.const(floatBytes));
  const aPointers = scratch.aPointers.slice(0, shape.rows);
  const bVectors = scratch.bVectors.slice(0, shape.vectors);
  const sums = scratch.sums.slice(0, shape.rows * shape.vectors);
  for (const sum of sums) sum.set(f32x4.const(0));
  for (const [r, pointer] of aPointers.entries()) pointer.set(i32.add(shape.a, i32.mul(p.aRow.get, i32.const(r))));
  scratch.bPointer.set(i32.add(p.b.get, columnBytes));
  f.for(scratch.count, p.k.get, i32.const(1), () => {
    for (const [v, vector] of bVectors.entries()) vector.set(v128.load(scratch.bPointer.get, v * vectorBytes));
    for (const [r, pointer] of aPointers.entries()) {
      scratch.splat.set(v128.loadSplat(pointer.get));
      for (const [v, vector] of bVectors.entries()) {
        const sum = sums[r * shape.vectors + v];
        sum?.set(f32x4.add(sum.get, f32x4.mul(scratch.splat.get, vector.get)));
      }
      pointer.set(i32.add(pointer.get, p.aColumn.get));
    }
    scratch.bPointer.set(i32.add(scratch.bPointer.get, p.bRow.get));
  });
  storeTile(f, p, sums, { pointer: scratch.cPointer, address: i32.add(shape.c, columnBytes), vectors: shape.vectors });
}

interface TileTarget {
  readonly pointer: Local;
  /** Address of the tile's first element of C. */
  readonly address: Code;
  readonly vectors: number;
}

function storeTile(f: FunctionBuilder, p: Parameters, sums: readonly Local[], target: TileTarget): void {
  const { pointer, vectors } = target;
  f.if(p.accumulate.get, () =>
    eachSum((address, offset, sum) => sum.set(f32x4.add(v128.load(address, offset), sum.get))),
  );
  eachSum((address, offset, sum) => f.storeV128(address, sum.get, offset));

  function eachSum(visit: (address: Code, offset: number, sum: Local) => void): void {
    pointer.set(target.address);
    for (const [index, sum] of sums.entries()) {
      const v = index % vectors;
      if (v === 0 && index > 0) pointer.set(i32.add(pointer.get, p.cRow.get));
      visit(pointer.get, v * vectorBytes, sum);
    }
  }
}
