import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import type { Kernels } from '../../../../infra/kits/embedded-policy/kernels/kernels.ts';
import { createKernels, emitKernelModule } from '../../../../infra/kits/embedded-policy/kernels/simd.ts';
import { createRandom } from '../../../../infra/kits/embedded-policy/model/random.ts';
import { createJsKernels } from './support/js-kernels.ts';

const floats = 120_000;
const [aOffset, bOffset, cOffset, statsOffset] = [0, 30_000, 60_000, 100_000];

function filled(seed: number, create = createKernels): Kernels {
  const kernels = create(floats);
  const random = createRandom(seed);
  for (let i = 0; i < cOffset; i++) kernels.f32[i] = random.normal();
  return kernels;
}

interface Span {
  readonly from: number;
  readonly count: number;
}

function assertClose(js: Kernels, simd: Kernels, { from, count }: Span, tolerance = 2e-5): void {
  for (let i = from; i < from + count; i++) {
    const [a, b] = [Number(js.f32[i]), Number(simd.f32[i])];
    assert.ok(Math.abs(a - b) <= tolerance * (1 + Math.abs(a)), `at ${i - from}: js ${a}, simd ${b}`);
  }
}

const seed = fc.nat(10_000);
const shape = fc.record({
  m: fc.integer({ min: 1, max: 21 }),
  n: fc.integer({ min: 1, max: 19 }).map((vectors) => 4 * vectors),
  k: fc.integer({ min: 1, max: 90 }),
  transposed: fc.boolean(),
  accumulate: fc.boolean(),
});

it('products equal those in plain TypeScript for any shape, transposed or not, adding or not', () => {
  fc.assert(
    fc.property(shape, seed, ({ m, n, k, transposed, accumulate }, s) => {
      const [js, simd] = [filled(s, createJsKernels), filled(s)];
      const strides = transposed ? { aRow: 1, aColumn: m } : { aRow: k, aColumn: 1 };
      for (const kernels of [js, simd]) {
        kernels.gemm({ c: cOffset, cRow: n, a: aOffset, ...strides, b: bOffset, bRow: n, m, n, k, accumulate });
        kernels.gemm({ c: cOffset, cRow: n, a: aOffset, ...strides, b: bOffset, bRow: n, m, n, k, accumulate });
      }
      assertClose(js, simd, { from: cOffset, count: m * n });
    }),
    { numRuns: 60 },
  );
});

it('a row of a product has the same bits alone and beside other rows', () => {
  fc.assert(
    fc.property(shape, seed, ({ m, n, k, accumulate }, s) => {
      const [together, apart] = [filled(s), filled(s)];
      const common = { aRow: k, aColumn: 1, b: bOffset, bRow: n, cRow: n, n, k, accumulate };
      together.gemm({ ...common, c: cOffset, a: aOffset, m });
      for (let r = 0; r < m; r++) apart.gemm({ ...common, c: cOffset + r * n, a: aOffset + r * k, m: 1 });
      assert.deepEqual(together.f32.subarray(cOffset, cOffset + m * n), apart.f32.subarray(cOffset, cOffset + m * n));
    }),
    { numRuns: 60 },
  );
});

it('a softmax row sums to one, is zero beyond its valid columns, and does not depend on its padding', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 9 }), seed, (valid, extra, s) => {
      const width = 4 * (Math.ceil(valid / 4) + extra);
      const run = (columns: number): Float32Array => {
        const kernels = filled(s);
        kernels.softmax({
          x: aOffset,
          row: width,
          rows: 1,
          width: columns,
          firstValid: valid,
          validStep: 1,
          scale: 3,
          stats: statsOffset,
        });
        return kernels.f32.slice(aOffset, aOffset + columns);
      };
      const [wide, narrow] = [run(width), run(4 * Math.ceil(valid / 4))];
      assert.deepEqual(wide.subarray(0, valid), narrow.subarray(0, valid));
      assert.ok(wide.subarray(valid).every((value) => value === 0));
      assert.ok(Math.abs(wide.reduce((a, b) => a + b, 0) - 1) < 1e-5);
    }),
    { numRuns: 60 },
  );
});

it('norms, activations, softmax and their gradients equal those in plain TypeScript', () => {
  const [js, simd] = [filled(1, createJsKernels), filled(1)];
  const [rows, width] = [13, 36];
  for (const kernels of [js, simd]) {
    kernels.rmsNorm({ y: cOffset, inverseRms: statsOffset, x: aOffset, gain: bOffset, rows, width });
    const normed = {
      dx: cOffset,
      dGain: cOffset + 2000,
      dy: bOffset,
      x: aOffset,
      inverseRms: statsOffset,
      gain: bOffset,
      rows,
      width,
    };
    kernels.rmsNormBackward(normed);
    kernels.silu(cOffset + 4000, aOffset, 480);
    kernels.siluBackward(aOffset + 2000, bOffset, 480);
    const softmax = {
      x: aOffset + 4000,
      row: 40,
      rows,
      width,
      firstValid: 3,
      validStep: 2,
      scale: 0.5,
      stats: statsOffset + 100,
    };
    kernels.softmax(softmax);
    kernels.softmaxBackward({ y: aOffset + 4000, dy: bOffset, row: 40, rows, width, scale: 0.5 });
    kernels.transpose({
      target: cOffset + 8000,
      targetRow: rows,
      source: aOffset,
      sourceRow: width,
      rows,
      columns: width,
    });
  }
  assertClose(js, simd, { from: aOffset, count: bOffset - aOffset });
  assertClose(js, simd, { from: bOffset, count: cOffset - bOffset });
  assertClose(js, simd, { from: cOffset, count: 20_000 });
  assertClose(js, simd, { from: statsOffset, count: 200 });
});

it('the emitted module is small and always the same bytes', () => {
  const module = emitKernelModule();
  assert.deepEqual(module, emitKernelModule());
  assert.ok(module.length < 10_000, `${module.length} bytes`);
});
