import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../failure.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { runsAsRoot } from './accounts.ts';

/**
 * A cgroup (version 2 or 1) that limits all processes of a sandbox together. It exists if temper runs as root on a host whose
 * hierarchy is writable. Without it limits hold per process, and totals are checked periodically.
 */
export interface ControlGroup {
  readonly directories: readonly string[];
  /** The file whose `oom_kill` line counts how often the memory limit was exceeded. */
  readonly memoryEvents: string;
  /** The file whose `max` line counts how often the process limit was exceeded. */
  readonly pidsEvents: string;
}

interface Hierarchy {
  readonly memory: string;
  readonly pids: string;
  readonly settings: (spec: SandboxSpec) => Readonly<Record<string, number>>;
  readonly memoryEvents: string;
}

const parent = 'temper';
const megabyte = 2 ** 20;
/** The number of the confinement's own processes, which count as well: bubblewrap and the shell around it. */
const ownPids = 8;
const removeAttempts = 50;
const removePauseMs = 5;

const version2: Hierarchy = {
  memory: '/sys/fs/cgroup',
  pids: '/sys/fs/cgroup',
  settings: ({ memoryMb }) => ({ 'memory.max': memoryMb * megabyte, 'memory.swap.max': 0 }),
  memoryEvents: 'memory.events',
};
const version1: Hierarchy = {
  memory: '/sys/fs/cgroup/memory',
  pids: '/sys/fs/cgroup/pids',
  settings: ({ memoryMb }) => ({ 'memory.limit_in_bytes': memoryMb * megabyte }),
  memoryEvents: 'memory.oom_control',
};

let found: Hierarchy | null | undefined;

/** Finds the hierarchy in which groups can be created here; undefined if there is no such hierarchy. Cached. */
export function findHierarchy(): Hierarchy | undefined {
  if (found === undefined) found = [version2, version1].find(isUsable) ?? null;
  return found ?? undefined;
}

/** Creates the group of one sandbox. `name` must be unique on this machine. */
export function createGroup(name: string, spec: SandboxSpec): ControlGroup | undefined {
  const hierarchy = findHierarchy();
  if (!hierarchy) return undefined;
  const memory = join(hierarchy.memory, parent, name);
  const pids = join(hierarchy.pids, parent, name);
  for (const directory of [memory, pids]) mkdirSync(directory, { recursive: true });
  for (const [file, value] of Object.entries(hierarchy.settings(spec))) {
    // Hosts without swap accounting don't have the swap file.
    if (existsSync(join(memory, file))) writeFileSync(join(memory, file), String(value));
  }
  writeFileSync(join(pids, 'pids.max'), String(spec.pids + ownPids));
  const directories = [...new Set([memory, pids])];
  return { directories, memoryEvents: join(memory, hierarchy.memoryEvents), pidsEvents: join(pids, 'pids.events') };
}

/** Removes a group, retrying until its last process has ended. */
export async function removeGroup(group: ControlGroup): Promise<void> {
  for (const directory of group.directories) {
    for (let attempt = 1; !removed(directory) && attempt < removeAttempts; attempt++) await delay(removePauseMs);
  }
}

/** Wraps a command so that it joins its group before any of it runs. */
export function joinGroup(group: ControlGroup | undefined, argv: readonly string[]): readonly string[] {
  if (!group) return argv;
  const script = `n=$1; shift; while [ $n -gt 0 ]; do echo 0 >"$1/cgroup.procs" || exit 1; n=$((n-1)); shift; done; exec "$@"`;
  return ['/bin/sh', '-c', script, 'temper-join', String(group.directories.length), ...group.directories, ...argv];
}

function removed(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return true;
    if (errorCode(error) === 'EBUSY') return false;
    throw error;
  }
}

function isUsable({ memory, pids, memoryEvents }: Hierarchy): boolean {
  if (!runsAsRoot()) return false;
  try {
    for (const root of [memory, pids]) {
      // Below /sys without a hierarchy, where nothing can be created, a recursive `mkdirSync` tries again for ever.
      if (!existsSync(join(root, 'cgroup.procs'))) return false;
      mkdirSync(join(root, parent), { recursive: true });
      accessSync(join(root, parent, 'cgroup.procs'), constants.W_OK);
    }
    if (memory === pids) delegate(memory);
    const events = join(memory, parent, memoryEvents);
    return (
      existsSync(events) &&
      readFileSync(events, 'utf8').includes('oom_kill ') &&
      existsSync(join(pids, parent, 'pids.max'))
    );
  } catch {
    return false;
  }
}

/** Delegates the controllers level by level, as version 2 requires. */
function delegate(root: string): void {
  for (const directory of [root, join(root, parent)])
    writeFileSync(join(directory, 'cgroup.subtree_control'), '+memory +pids');
}
