/** What of the host a local command sees beside its sandbox: programs and libraries, read-only, and no secrets. */
import { existsSync, lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { ConfinedCommand } from './confinement.ts';
import { prepareEtc } from './etc.ts';
import { etcOf, treeOf, visibleDirectories } from './layout.ts';

export interface View {
  readonly source: string;
  readonly target: string;
  readonly writable: boolean;
}

export interface SystemView {
  readonly views: readonly View[];
  /** Links in the root, as the host has them: `bin` to `usr/bin`. */
  readonly links: readonly { readonly target: string; readonly path: string }[];
}

const rootNames = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

const readOnly = (source: string, target = source): View => ({ source, target, writable: false });

/** `root`: where local sandboxes lie. */
export function systemView(root: string): SystemView {
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

/** The sandbox's own directories, the gateway's socket and the runtimes, as the command's account may see them. */
export function sandboxViews({ place, account }: ConfinedCommand): readonly View[] {
  const { gatewayDir, mounts } = place.spec;
  const own = visibleDirectories(place, account).map((name) => ({
    source: join(treeOf(place), name),
    target: `/${name}`,
    writable: true,
  }));
  return [
    readOnly(join(etcOf(place), 'passwd'), '/etc/passwd'),
    readOnly(join(etcOf(place), 'group'), '/etc/group'),
    ...own,
    { source: join(treeOf(place), 'tmp'), target: '/var/tmp', writable: true },
    ...(gatewayDir === undefined ? [] : [readOnly(gatewayDir, '/gw')]),
    ...mounts.map(({ source, target }) => readOnly(source, target)),
  ];
}
