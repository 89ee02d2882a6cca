import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface Mount {
  /** The mounted path for a bind, otherwise any name. */
  readonly source: string;
  readonly target: string;
  /** `none` is a bind. */
  readonly type: 'none' | 'tmpfs' | 'devpts' | 'proc';
  readonly options: readonly string[];
}

/** A mount point of the host with its options. */
export interface HostMount {
  readonly path: string;
  readonly options: readonly string[];
}

/** Formats mounts as fstab(5), for one call of `mount --all`. */
export function mountTable(mounts: readonly Mount[]): string {
  const line = ({ source, target, type, options }: Mount): string =>
    [source, target, type, options.join(',')].map(escaped).join(' ');
  return mounts.map((mount) => `${line(mount)} 0 0\n`).join('');
}

/** The mounts that this process sees, from /proc/PID/mountinfo. The last mount at a path hides the ones before it. */
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
 * Binds a directory or file with everything that is mounted below it. It is bound as a whole, because a user namespace may not
 * remove any of these mounts. That makes only the top read-only, so each mount below is bound again.
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

/** Flags of a bind. A user namespace cannot clear a flag either, so `noexec` is kept; `nosuid` and `nodev` are always set. */
function restrictions(path: string, host: readonly HostMount[]): readonly string[] {
  const above = host.filter((mount) => mount.path === path || isBelow(path, mount.path));
  const [nearest] = above.sort((one, other) => other.path.length - one.path.length);
  return ['nosuid', 'nodev', ...(nearest?.options.includes('noexec') ? ['noexec'] : [])];
}

const isBelow = (path: string, directory: string): boolean =>
  path.startsWith(directory === '/' ? '/' : `${directory}/`);

const escaped = (text: string): string =>
  text.replace(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
const unescaped = (text: string): string =>
  text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
