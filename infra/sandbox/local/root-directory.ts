import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepareDirectory } from './shared-directory.ts';
import type { SystemViews } from './views.ts';

/** The mount point of the host's root while the new root replaces it; empty afterwards, as on a host. */
export const oldRoot = '/mnt';
export const rootDevices = ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map((name) => `/dev/${name}`);

const ownDirectories = ['/etc', '/logs', '/run', '/var', '/proc', '/dev', '/dev/shm', oldRoot];
const standardStreams = ['stdin', 'stdout', 'stderr'];
const deviceLinks = [
  { target: '/proc/self/fd', path: '/dev/fd' },
  ...standardStreams.map((name, fd) => ({ target: `/proc/self/fd/${fd}`, path: `/dev/${name}` })),
];

/**
 * Returns the root directory of local commands before anything is mounted in it, a directory below `root`: the links, files for
 * the devices, and directories to mount at. It is mounted read-only, so that all commands can share it.
 */
export function prepareRoot(root: string, links: SystemViews['links'], directories: readonly string[]): string {
  const all = { links: [...links, ...deviceLinks], directories: [...ownDirectories, ...directories] };
  const fill = (staging: string): void => {
    for (const path of all.directories) mkdirSync(join(staging, path), { recursive: true });
    for (const path of rootDevices) writeFileSync(join(staging, path), '');
    for (const { target, path } of all.links) symlinkSync(target, join(staging, path));
  };
  return prepareDirectory(root, { name: 'root', state: JSON.stringify(all), fill });
}
