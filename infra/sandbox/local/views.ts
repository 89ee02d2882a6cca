import { existsSync, lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { ConfinedCommand } from './confinement.ts';
import { prepareEtc } from './etc-directory.ts';
import { etcOf, treeOf, visibleDirectories } from './layout.ts';

/** A directory or file of the host that appears inside a local sandbox. */
export interface View {
  readonly source: string;
  readonly target: string;
  readonly writable: boolean;
}

/** The parts of the host that every local command sees read-only: programs and libraries, but no secrets. */
export interface SystemViews {
  readonly views: readonly View[];
  /** Symlinks in the host's root, such as `bin` to `usr/bin`. */
  readonly links: readonly { readonly target: string; readonly path: string }[];
}

const rootNames = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

const readOnly = (source: string, target = source): View => ({ source, target, writable: false });

/** Finds the system's directories on this host. `root` is the directory of local sandboxes. */
export function systemViews(root: string): SystemViews {
  mkdirSync(root, { recursive: true });
  const roots = rootNames.map((name) => `/${name}`).filter((path) => existsSync(path));
  const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();
  return {
    views: [
      readOnly('/usr'),
      ...roots.filter((path) => !isLink(path)).map((path) => readOnly(path)),
      readOnly(prepareEtc(root), '/etc'),
    ],
    links: roots.filter(isLink).map((path) => ({ target: readlinkSync(path), path })),
  };
}

/** The sandbox's own directories, the gateway's socket and the runtimes, as far as the command's account may see them. */
export function sandboxViews({ sandbox, account }: ConfinedCommand): readonly View[] {
  const { gatewayDir, mounts } = sandbox.spec;
  const own = visibleDirectories(sandbox, account).map((name) => ({
    source: join(treeOf(sandbox), name),
    target: `/${name}`,
    writable: true,
  }));
  return [
    readOnly(join(etcOf(sandbox), 'passwd'), '/etc/passwd'),
    readOnly(join(etcOf(sandbox), 'group'), '/etc/group'),
    ...own,
    { source: join(treeOf(sandbox), 'tmp'), target: '/var/tmp', writable: true },
    ...(gatewayDir === undefined ? [] : [readOnly(gatewayDir, '/gw')]),
    ...mounts.map(({ source, target }) => readOnly(source, target)),
  ];
}
