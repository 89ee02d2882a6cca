/** What the root of a local command holds before anything is mounted in it. Shown read-only, so that all commands may share it. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepareDirectory } from './prepared.ts';
import type { SystemView } from './system.ts';

/** Where the host's root is while the new one takes its place; empty afterwards, as it is on a host. */
export const oldRoot = '/mnt';
export const rootDevices = ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map((name) => `/dev/${name}`);

const ownDirectories = ['/etc', '/logs', '/run', '/var', '/proc', '/dev', '/dev/shm', oldRoot];
const deviceLinks = [
  { target: '/proc/self/fd', path: '/dev/fd' },
  ...['stdin', 'stdout', 'stderr'].map((name, fd) => ({ target: `/proc/self/fd/${fd}`, path: `/dev/${name}` })),
];

/** The directory below `root`: the links, places for the devices, and directories to mount at, by absolute paths. */
export function prepareRoot(root: string, links: SystemView['links'], directories: readonly string[]): string {
  const all = { links: [...links, ...deviceLinks], directories: [...ownDirectories, ...directories] };
  const fill = (staging: string): void => {
    for (const path of all.directories) mkdirSync(join(staging, path), { recursive: true });
    for (const path of rootDevices) writeFileSync(join(staging, path), '');
    for (const { target, path } of all.links) symlinkSync(target, join(staging, path));
  };
  return prepareDirectory(root, { name: 'root', state: JSON.stringify(all), fill });
}
