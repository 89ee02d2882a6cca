import { spawnSync } from 'node:child_process';
import { basename, dirname } from 'node:path';
import type { Availability } from '../../runner/need.ts';

/** The calls that give, take or fill names, and those by which a program tells the test what has returned. */
const calls =
  'openat mkdir mkdirat rename renameat renameat2 link linkat unlink unlinkat rmdir write writev pwrite64 pwritev ftruncate fsync fdatasync access faccessat2'.split(
    ' ',
  );

/** Whether this machine has strace, and this user may trace a process with it. */
export function probeStrace(): Availability {
  const { error, status, stderr } = spawnSync('strace', ['-o', '/dev/null', 'true'], { encoding: 'utf8' });
  if (error !== undefined) return { usable: false, reason: 'this machine lacks strace (the Debian package strace)' };
  return status === 0 ? { usable: true } : { usable: false, reason: `strace cannot trace here (${stderr.trim()})` };
}

/** Returns the command line that runs a program and writes its system calls to a file. */
export const straceArguments = (output: string, command: readonly string[]): string[] => {
  const options = `--seccomp-bpf -f -qq -y -s 4096 -e trace=${calls.join(',')} -e signal=none -o`;
  return [...options.split(' '), output, '--', ...command];
};

/** The state of the files when an operation returns. */
export interface Returned {
  readonly operation: string;
  /** The names that the operation gave, and how. */
  readonly named: readonly string[];
  /** The names whose directory has not been synced since, and the files whose bytes have not. */
  readonly unsafe: readonly string[];
}

/** The path by which a program tells that an operation has returned. */
export const returnedPath = '/operation-returned/';

/**
 * Reads which names and bytes below `root` a power cut would take, each time an operation returns: a name is safe once its
 * directory was synced after it was given, and bytes are once their file was synced, or opened for synchronous writes. Names of
 * drafts and locks need not last, nor those of the processes that a power cut ends.
 */
export function returnedIn(trace: string, root: string): Returned[] {
  const found: Returned[] = [];
  const names = new Map<string, string>();
  const dirty = new Set<string>();
  const synchronous = new Set<string>();
  let named: string[] = [];
  const isKept = (path: string): boolean => path.startsWith(root) && !/\.(tmp|lock|holder)$/.test(path);
  const give = (path: string, how: string): void => {
    if (!isKept(path)) return;
    names.set(path, how);
    named.push(`${how} ${basename(path)}`);
  };
  for (const { name, args, result } of callsIn(trace)) {
    const paths = [...args.matchAll(/"([^"]*)"/g)].map(([, path = '']) => path);
    const [path = '', target = ''] = paths;
    const opened = /^\d+<([^>]*)>/.exec(args)?.[1] ?? '';
    if (path.startsWith(returnedPath)) {
      const unsafe = [...names].map(([at, how]) => `${how} ${at.slice(root.length + 1)}`);
      for (const at of dirty) if (isKept(at)) unsafe.push(`bytes of ${at.slice(root.length + 1)}`);
      found.push({ operation: path.slice(returnedPath.length), named, unsafe });
      named = [];
      names.clear();
      dirty.clear();
    } else if (result < 0) continue;
    else if (name === 'openat') {
      if (args.includes('O_CREAT') && !names.has(path)) give(path, 'create');
      if (/O_D?SYNC/.test(args)) synchronous.add(path);
    } else if (name.startsWith('mkdir')) give(path, 'mkdir');
    else if (name.startsWith('rename') || name.startsWith('link')) {
      give(target, name.startsWith('rename') ? 'rename' : 'link');
      if (dirty.has(path)) dirty.add(target);
      if (!name.startsWith('rename')) continue;
      names.delete(path);
      dirty.delete(path);
    } else if (name.startsWith('unlink') || name === 'rmdir') {
      names.delete(path);
      dirty.delete(path);
    } else if (name.endsWith('sync')) {
      dirty.delete(opened);
      for (const at of names.keys()) if (dirname(at) === opened) names.delete(at);
    } else if (!name.includes('access') && !synchronous.has(opened)) dirty.add(opened);
  }
  return found;
}

/** Returns the calls in the order in which they returned. */
function callsIn(trace: string): { readonly name: string; readonly args: string; readonly result: number }[] {
  const begun = new Map<string, string>();
  return trace.split('\n').flatMap((line) => {
    const [, pid = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (text.endsWith('<unfinished ...>')) {
      begun.set(pid, text.slice(0, -'<unfinished ...>'.length));
      return [];
    }
    const rest = /^<\.\.\. \w+ resumed>(.*)$/.exec(text)?.[1];
    const whole = rest === undefined ? text : (begun.get(pid) ?? '') + rest;
    const [, name, args = '', result] = /^(\w+)\((.*)\) += (-?\d+)/.exec(whole) ?? [];
    return name === undefined ? [] : [{ name, args, result: Number(result) }];
  });
}
