import type { KernelName } from '../core.ts';
import { createJsKernels } from './js.ts';
import type { Kernels } from './kernels.ts';
import { createSimdKernels } from './simd.ts';

const kernelFactories: Readonly<Record<KernelName, (floats: number) => Kernels>> = {
  js: createJsKernels,
  simd: createSimdKernels,
};

/** Creates kernels with an arena of `floats` zeros. The arena never moves, so views of it stay valid. */
export function createKernels(name: KernelName, floats: number): Kernels {
  return kernelFactories[name](floats);
}
