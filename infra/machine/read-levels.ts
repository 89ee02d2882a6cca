import { readdirSync, statfsSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { controlGroupLevels } from './control-groups.ts';
import { readKernelFile, readKernelNumber } from './kernel-files.ts';
import type { Level } from './level.ts';

const megabyte = 2 ** 20;

export interface LevelsOptions {
  /** Directories whose file systems rollouts fill, such as the home of the stack. */
  readonly directories: readonly string[];
  /** The root of `/proc` and `/sys`. Only tests set it. */
  readonly root?: string;
}

/**
 * Reads every limit that a new rollout could run into. A resource may have several: the machine's, and one for each control
 * group above this process. Reads a dozen small files of the kernel and takes less than a millisecond.
 */
export function readLevels({ directories, root = '/' }: LevelsOptions): readonly Level[] {
  return [
    memoryOfMachine(root),
    ...processesOfMachine(root),
    ...openFiles(root),
    ...controlGroupLevels(root),
    ...directories.flatMap(diskOf),
  ];
}

function memoryOfMachine(root: string): Level {
  const info = readKernelFile(join(root, 'proc/meminfo')) ?? '';
  const kilobytes = (name: string): number | undefined => {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(info)?.[1];
    return found === undefined ? undefined : Number(found) / 1024;
  };
  const free = kilobytes('MemAvailable') ?? freemem() / megabyte;
  const total = kilobytes('MemTotal') ?? totalmem() / megabyte;
  return { resource: 'memory', free, total, limit: "the machine's memory" };
}

/** The kernel counts processes and threads alike. The fourth field of loadavg has both, as `running/all`. */
function processesOfMachine(root: string): readonly Level[] {
  const running = Number(readKernelFile(join(root, 'proc/loadavg'))?.split(' ')[3]?.split('/')[1] ?? 0);
  return ['pid_max', 'threads-max'].flatMap((name): readonly Level[] => {
    const total = readKernelNumber(join(root, 'proc/sys/kernel', name));
    if (total === undefined) return [];
    return [{ resource: 'processes', free: total - running, total, limit: `kernel.${name}` }];
  });
}

/** The handles of this process, which holds several for each rollout, and those of the machine. */
function openFiles(root: string): readonly Level[] {
  const levels: Level[] = [];
  const limits = readKernelFile(join(root, 'proc/self/limits')) ?? '';
  const total = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
  if (!Number.isNaN(total)) {
    levels.push({ resource: 'handles', free: total - openHandles(root), total, limit: 'ulimit -n' });
  }
  const [allocated, , most] = (readKernelFile(join(root, 'proc/sys/fs/file-nr')) ?? '').split(/\s+/).map(Number);
  if (allocated !== undefined && most !== undefined) {
    levels.push({ resource: 'handles', free: most - allocated, total: most, limit: 'fs.file-max' });
  }
  return levels;
}

function openHandles(root: string): number {
  try {
    return readdirSync(join(root, 'proc/self/fd')).length;
  } catch {
    return 0;
  }
}

/** The disk of a directory; nothing if the directory does not exist. */
function diskOf(directory: string): readonly Level[] {
  try {
    const { bavail, blocks, bsize } = statfsSync(directory);
    const inMb = bsize / megabyte;
    return [{ resource: 'disk', free: bavail * inMb, total: blocks * inMb, limit: `the disk of ${directory}` }];
  } catch {
    return [];
  }
}
