import { runsAsRoot } from './accounts.ts';
import type { ConfinedCommand, Confinement } from './confinement.ts';
import { describeConfinement } from './description.ts';
import { requireProgram } from './programs.ts';
import { limitedCommand } from './resource-limits.ts';
import { sandboxViews, systemViews, type View } from './views.ts';

const sharedMemoryBytes = 64 * 2 ** 20;

/**
 * Creates the confinement by bubblewrap. If temper runs as root, commands drop to the sandbox's own uid; otherwise bubblewrap
 * creates a user namespace.
 */
export function createBubblewrap(root: string): Confinement {
  const program = requireProgram('bwrap');
  const system = systemArguments(root);
  return {
    name: 'bubblewrap',
    commandLine: (command) => [
      program,
      ...system,
      ...ownArguments(command),
      '--',
      ...limitedCommand(command, runsAsRoot()),
    ],
    describe: describeConfinement('bubblewrap'),
  };
}

function systemArguments(root: string): readonly string[] {
  const { views, links } = systemViews(root);
  const namespaces = [
    '--unshare-pid',
    '--unshare-net',
    '--unshare-ipc',
    '--unshare-uts',
    '--as-pid-1',
    '--hostname',
    'sandbox',
  ];
  const directories = ['etc', 'logs', 'run', 'var'].flatMap((name) => ['--perms', '0755', '--dir', `/${name}`]);
  const sharedMemory = ['--size', String(sharedMemoryBytes), '--perms', '1777', '--tmpfs', '/dev/shm'];
  return [
    ...(runsAsRoot() ? [] : ['--unshare-user']),
    ...namespaces,
    ...directories,
    '--json-status-fd',
    '5',
    ...views.flatMap(bind),
    ...links.flatMap(({ target, path }) => ['--symlink', target, path]),
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...sharedMemory,
    '--remount-ro',
    '/dev',
  ];
}

const bind = ({ source, target, writable }: View): readonly string[] => [
  writable ? '--bind' : '--ro-bind',
  source,
  target,
];

const ownArguments = (command: ConfinedCommand): readonly string[] => [
  ...(command.detached ? [] : ['--die-with-parent']),
  ...sandboxViews(command).flatMap(bind),
  '--remount-ro',
  '/',
  '--chdir',
  '/',
];
