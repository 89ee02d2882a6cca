import { readFileSync } from 'node:fs';

/** Reads a text file of the kernel; undefined where it does not exist or may not be read. */
export function readKernelFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Reads a number from a file of the kernel; undefined for a missing file and for a text such as `max`. */
export function readKernelNumber(path: string): number | undefined {
  const value = Number.parseInt(readKernelFile(path) ?? '', 10);
  return Number.isNaN(value) ? undefined : value;
}
