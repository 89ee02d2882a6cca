import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConfinedCommand } from './confinement.ts';
import { etcOf, treeOf, visibleDirectories } from './layout.ts';
import { prepareDirectory } from './shared-directory.ts';

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

const names =
  /^(alternatives|ld\.so\.(cache|conf|conf\.d)|ssl|ca-certificates|pki|localtime|timezone|perl|python3.*|bash\.bashrc|profile|mime\.types|services|protocols|nsswitch\.conf)$/;
const secrets = /\/(private|ssl\/private|pki\/.*private.*)$/;
/** Files over which every sandbox mounts its own. */
const placeholders = ['passwd', 'group'];
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

/**
 * Returns the /etc of local commands, a directory below `root`: a copy of what programs need of the host's /etc (linker cache,
 * alternatives, certificates, language configuration) without its secrets. It is one copy because mounts dominate the cost of a
 * command. The copy is renewed when the host's /etc changes.
 */
function prepareEtc(root: string): string {
  const found = readdirSync('/etc').filter((name) => names.test(name) && existsSync(join('/etc', name)));
  const state = found.map((name) => `${name} ${lstatSync(join('/etc', name)).mtimeMs}`).join('\n');
  const fill = (staging: string): void => {
    for (const name of found) {
      const filter = (source: string): boolean => !secrets.test(source);
      cpSync(join('/etc', name), join(staging, name), { recursive: true, verbatimSymlinks: true, filter });
    }
    for (const name of placeholders) writeFileSync(join(staging, name), '');
  };
  return prepareDirectory(root, { name: 'etc', state, fill });
}
