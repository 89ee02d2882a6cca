/** Tables of mounts in the form of fstab(5), for one call of `mount --all`. */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface Mount {
  /** What is mounted: a path for a bind, else any name. */
  readonly source: string;
  readonly target: string;
  /** `none`: a bind. */
  readonly type: 'none' | 'tmpfs' | 'proc';
  readonly options: readonly string[];
}

/** A file system of the host: where it is mounted, and how. */
export interface HostMount {
  readonly path: string;
  readonly options: readonly string[];
}

export function mountTable(mounts: readonly Mount[]): string {
  const line = ({ source, target, type, options }: Mount): string =>
    [source, target, type, options.join(',')].map(escaped).join(' ');
  return mounts.map((mount) => `${line(mount)} 0 0\n`).join('');
}

/** What this process sees mounted, as /proc/PID/mountinfo has it: the last one at a path hides those before it. */
export function hostMounts(mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): readonly HostMount[] {
  const mounts = new Map<string, HostMount>();
  for (const line of mountinfo.split('\n')) {
    const [, , , , path, options] = line.split(' ').map(unescaped);
    if (path !== undefined && options !== undefined) mounts.set(path, { path, options: options.split(',') });
  }
  return [...mounts.values()];
}

export function bindDevice(source: string, target: string): Mount {
  return { source, target, type: 'none', options: ['bind', 'nosuid'] };
}

/**
 * A directory or file with all that is mounted below it. A user namespace may take none of that away, which is why it is
 * bound as a whole; but only its top becomes read-only by that, so what lies below is shown once more.
 */
export function bindTree(
  { source, target }: Pick<Mount, 'source' | 'target'>,
  { access, host }: { readonly access: 'ro' | 'rw'; readonly host: readonly HostMount[] },
): readonly Mount[] {
  const below = access === 'rw' ? [] : host.filter(({ path }) => path !== source && isBelow(path, source));
  return [
    { source, target, type: 'none', options: ['rbind', access, ...restrictions(source, host)] },
    ...below.map(({ path }): Mount => {
      const options = ['rbind', access, ...restrictions(path, host)];
      return { source: path, target: join(target, relative(source, path)), type: 'none', options };
    }),
  ];
}

/** Nor may a user namespace take a flag away: `nosuid` and `nodev` are set in any case, and `noexec` is kept. */
function restrictions(path: string, host: readonly HostMount[]): readonly string[] {
  const holders = host.filter((mount) => mount.path === path || isBelow(path, mount.path));
  const [holder] = holders.sort((one, other) => other.path.length - one.path.length);
  return ['nosuid', 'nodev', ...(holder?.options.includes('noexec') ? ['noexec'] : [])];
}

const isBelow = (path: string, directory: string): boolean =>
  path.startsWith(directory === '/' ? '/' : `${directory}/`);

const escaped = (text: string): string =>
  text.replace(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
const unescaped = (text: string): string =>
  text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
