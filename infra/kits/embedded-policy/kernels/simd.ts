import type { Kernels } from './kernels.ts';
import { emitModule } from './wasm-emitter.ts';
import { gemm } from './wasm-gemm.ts';
import { rmsNorm, rmsNormBackward, silu, siluBackward, softmax, softmaxBackward, transpose } from './wasm-rows.ts';

/**
 * The kernels as WebAssembly with plain (not relaxed) SIMD, so that results are the same bits on every machine. The module is
 * emitted from wasm-gemm.ts and wasm-rows.ts when it is needed: a few kilobytes, in milliseconds, with no build step.
 */

const pageFloats = 16_384;

type Exports = Readonly<Record<string, (...values: number[]) => void>>;

/** Returns the bytes of the module, which are the same for every model. */
export function emitKernelModule(): Uint8Array<ArrayBuffer> {
  return emitModule([gemm, transpose, rmsNorm, rmsNormBackward, silu, siluBackward, softmax, softmaxBackward]);
}

/** Creates kernels with an arena of `floats` zeros. The arena never moves, so views of it stay valid. */
export function createKernels(floats: number): Kernels {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(floats / pageFloats) + 1 });
  const instance = new WebAssembly.Instance(new WebAssembly.Module(emitKernelModule()), { env: { memory } });
  const wasm = instance.exports as Exports; // emitted just above: every export is a function of numbers
  const call = (name: string) => {
    const exported = wasm[name];
    if (exported === undefined) throw new Error(`the kernel module does not export ${name}`);
    return exported;
  };
  const f32 = new Float32Array(memory.buffer);
  return { f32, ...bind(call) };
}

function bind(call: (name: string) => (...values: number[]) => void): Omit<Kernels, 'f32'> {
  const [runGemm, runSoftmax, runNorm] = [call('gemm'), call('softmax'), call('rmsNorm')];
  const [runNormBackward, runTranspose] = [call('rmsNormBackward'), call('transpose')];
  const [runSilu, runSiluBackward, runSoftmaxBackward] = [call('silu'), call('siluBackward'), call('softmaxBackward')];
  return {
    gemm(p) {
      const { m, n, k } = p;
      const [c, cRow, a, aRow] = [p.c * 4, p.cRow * 4, p.a * 4, p.aRow * 4];
      runGemm(c, cRow, a, aRow, p.aColumn * 4, p.b * 4, p.bRow * 4, m, n, k, p.accumulate ? 1 : 0);
    },
    transpose: (p) => runTranspose(p.target * 4, p.targetRow * 4, p.source * 4, p.sourceRow * 4, p.rows, p.columns),
    rmsNorm: (p) => runNorm(p.y * 4, p.inverseRms * 4, p.x * 4, p.gain * 4, p.rows, p.width),
    rmsNormBackward: (p) =>
      runNormBackward(p.dx * 4, p.dGain * 4, p.dy * 4, p.x * 4, p.inverseRms * 4, p.gain * 4, p.rows, p.width),
    silu: (y, x, count) => runSilu(y * 4, x * 4, count),
    siluBackward: (dx, x, count) => runSiluBackward(dx * 4, x * 4, count),
    softmax: (p) => runSoftmax(p.x * 4, p.row * 4, p.rows, p.width, p.firstValid, p.validStep, p.scale, p.stats * 4),
    softmaxBackward: (p) => runSoftmaxBackward(p.y * 4, p.dy * 4, p.row * 4, p.rows, p.width, p.scale),
  };
}
