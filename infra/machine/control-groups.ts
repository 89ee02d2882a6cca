import { join } from 'node:path';
import { readKernelFile, readKernelNumber } from './kernel-files.ts';
import type { Level } from './level.ts';

const megabyte = 2 ** 20;
/** The first version writes a number near 2^63 for "no limit". */
const unlimitedBytes = 2 ** 60;

/** The names of the same files in the two versions of control groups. */
interface Version {
  readonly memoryLimit: string;
  readonly memoryUsed: string;
  /** Cached files in `memory.stat`, which the kernel drops before it runs out. */
  readonly cached: RegExp;
}

const versions = {
  first: {
    memoryLimit: 'memory.limit_in_bytes',
    memoryUsed: 'memory.usage_in_bytes',
    cached: /^total_(?:in)?active_file (\d+)$/gm,
  },
  second: {
    memoryLimit: 'memory.max',
    memoryUsed: 'memory.current',
    cached: /^(?:in)?active_file (\d+)$/gm,
  },
} as const satisfies Record<string, Version>;

/**
 * Reads the limits on memory and processes of each control group that this process is in, up to the root: a container, a
 * slice or a service. Reads both versions of control groups.
 */
export function controlGroupLevels(root: string): readonly Level[] {
  const groups = readKernelFile(join(root, 'proc/self/cgroup')) ?? '';
  return groups.split('\n').flatMap((line) => {
    const [, controllers = '', path = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const names = controllers.split(',');
    const mount = (name: string): string => join(root, 'sys/fs/cgroup', name);
    if (controllers === '') return levelsAbove(mount(''), path, ['memory', 'pids'], versions.second);
    return ['memory', 'pids']
      .filter((name) => names.includes(name))
      .flatMap((name) => levelsAbove(mount(name), path, [name], versions.first));
  });
}

function levelsAbove(mount: string, path: string, controllers: readonly string[], version: Version): readonly Level[] {
  const segments = path.split('/').filter(Boolean);
  // In a container the path may be the host's, of which only the root is visible.
  const groups = segments.map((_, depth) => segments.slice(0, depth + 1).join('/'));
  return ['', ...groups].flatMap((group) => {
    const directory = join(mount, group);
    const name = `the control group /${group}`;
    return [
      ...(controllers.includes('memory') ? memoryOf(directory, name, version) : []),
      ...(controllers.includes('pids') ? processesOf(directory, name) : []),
    ];
  });
}

function memoryOf(directory: string, name: string, { memoryLimit, memoryUsed, cached }: Version): readonly Level[] {
  const total = readKernelNumber(join(directory, memoryLimit));
  const used = readKernelNumber(join(directory, memoryUsed));
  if (total === undefined || used === undefined || total >= unlimitedBytes) return [];
  const stat = readKernelFile(join(directory, 'memory.stat')) ?? '';
  const files = [...stat.matchAll(cached)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
  const free = (total - Math.max(0, used - files)) / megabyte;
  return [{ resource: 'memory', free, total: total / megabyte, limit: `${memoryLimit} of ${name}` }];
}

function processesOf(directory: string, name: string): readonly Level[] {
  const total = readKernelNumber(join(directory, 'pids.max'));
  const used = readKernelNumber(join(directory, 'pids.current'));
  if (total === undefined || used === undefined) return [];
  return [{ resource: 'processes', free: total - used, total, limit: `pids.max of ${name}` }];
}
