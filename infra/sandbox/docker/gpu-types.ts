import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';

const run = promisify(execFile);

/** A GPU of this machine. */
export interface HostGpu {
  /** The number by which Docker and CDI name it, too. */
  readonly index: number;
  /** The name, for example `NVIDIA H100 80GB HBM3`. */
  readonly name: string;
  readonly memoryMb: number;
}

/** The GPUs of this machine, or why they are not known. */
export type GpuList = { readonly gpus: readonly HostGpu[] } | { readonly unknown: string };

const timeoutMs = 20_000;

/** Lists the GPUs of this machine, as the driver's own program does. No daemon reports their types. */
export async function listGpus(program = 'nvidia-smi'): Promise<GpuList> {
  const args = ['--query-gpu=index,name,memory.total', '--format=csv,noheader,nounits'];
  try {
    const { stdout } = await run(program, args, { timeout: timeoutMs });
    return { gpus: stdout.split('\n').flatMap(gpuIn) };
  } catch (error) {
    return { unknown: errorMessage(error).split('\n')[0] ?? '' };
  }
}

function gpuIn(line: string): readonly HostGpu[] {
  const [, index, name = '', memory] = /^\s*(\d+),\s*(.*),\s*(\d+)\s*$/.exec(line) ?? [];
  return index === undefined ? [] : [{ index: Number(index), name, memoryMb: Number(memory) }];
}

/** Words that say nothing of a type, since not all names have them. */
const withoutMeaning = ['nvidia', 'tesla', 'geforce', 'quadro', ''];
const wordsOf = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => !withoutMeaning.includes(word));

/** The difference between the memory that a name has and that which the driver reports, as a part of it. */
const tolerance = 0.1;

/**
 * Whether a GPU is of a type such as `H100`, `A100-40`, `rtx-4090` or `nvidia-h100-80gb`: each word of the type must be a word of the
 * GPU's name, or its memory in GB. An `L40` is not of the type `L4`. An `A100` of any memory is of the type `A100`.
 */
export function isOfType({ name, memoryMb }: HostGpu, type: string): boolean {
  const [own, asked] = [wordsOf(name), wordsOf(type)];
  const isMemory = (word: string): boolean => {
    const [, gigabytes] = /^(\d+)(?:gb?)?$/.exec(word) ?? [];
    if (gigabytes === undefined) return false;
    return Math.abs(memoryMb / 1024 / Number(gigabytes) - 1) < tolerance;
  };
  return asked.length > 0 && asked.every((word, index) => own.includes(word) || (index > 0 && isMemory(word)));
}

/** Counts GPUs by their names, for a message. */
export function describeGpus(gpus: readonly HostGpu[]): string {
  const byName = Map.groupBy(gpus, ({ name }) => name);
  return [...byName].map(([name, same]) => `${name} (${same.length})`).join(', ') || 'none';
}
