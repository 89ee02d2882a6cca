import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runsAsRoot } from './accounts.ts';
import type { Confinement } from './confinement.ts';
import { describeConfinement } from './description.ts';
import { bindDevice, bindTree, hostMounts, mountTable } from './mount-table.ts';
import { requireProgram } from './programs.ts';
import { limitedCommand } from './resource-limits.ts';
import { prepareDirectory } from './shared-directory.ts';
import { type SystemViews, sandboxViews, systemViews, type View } from './views.ts';

/** The mount point of the host's root while the new root replaces it; empty afterwards, as on a host. */
const oldRoot = '/mnt';
const rootDevices = ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map((name) => `/dev/${name}`);

const ownDirectories = ['/etc', '/logs', '/run', '/var', '/proc', '/dev', '/dev/shm', '/dev/pts', oldRoot];
const standardStreams = ['stdin', 'stdout', 'stderr'];
const deviceLinks = [
  { target: '/proc/self/fd', path: '/dev/fd' },
  { target: 'pts/ptmx', path: '/dev/ptmx' },
  ...standardStreams.map((name, fd) => ({ target: `/proc/self/fd/${fd}`, path: `/dev/${name}` })),
];

/**
 * Runs as the namespace's pid 1: reports its pid, builds its root, moves into it and becomes the command's init. $1 mount point
 * of the root, $2 the table of mounts, the rest: the command. It creates no directory, because that could recreate the path of a
 * sandbox that is being removed. It finds its own tools independently of the command's PATH. Each program that it starts costs
 * every command a millisecond or two, so it starts few.
 */
const script = `
set -e
path=$PATH PATH=/usr/sbin:/usr/bin:/sbin:/bin
identify() { printf '{ "child-pid": %s, "start-tick": %s }\n' "$1" "\${22}" >&5; }
read -r stat </proc/self/stat; identify $stat
ip link set lo up
if [ -w /proc/sys/kernel/hostname ]; then echo sandbox >/proc/sys/kernel/hostname; else hostname sandbox; fi
mount -n -a -T "$2"
cd "$1"; shift 2
pivot_root . .${oldRoot}
umount -n -l ${oldRoot}
printf '{ "ready": true }\n' >&5; exec 5>&-
PATH=$path
exec "$@"
`;

/** Makes the first child the namespace's pid 1. unshare's own --fork would report a killed child as exit code 1. */
const forkInit = '"$@"; exit $?';
const sharedMemory = ['mode=1777', 'size=64m', 'nosuid', 'nodev'];
/** The sandbox's own pseudo-terminals: a few of those that the kernel has for the whole machine. */
const terminals = ['newinstance', 'max=64', 'ptmxmode=0666', 'mode=0620', 'nosuid', 'noexec'];

const tools = ['unshare', 'mount', 'umount', 'pivot_root', 'ip', 'hostname'];

/**
 * Creates the confinement by util-linux alone, for hosts without bubblewrap: the same namespaces, set up by a shell script. If
 * temper does not run as root, the command is uid 0 of a user namespace, without capabilities, and the caller's uid outside.
 */
export function createUnshare(root: string): Confinement {
  const { views, links } = systemViews(root);
  for (const program of tools) requireProgram(program);
  const namespaces = ['--mount', '--pid', '--net', '--ipc', '--uts'];
  return {
    name: 'unshare',
    commandLine: (command) => {
      const { path } = command.sandbox;
      const shown = [...views, ...sandboxViews(command)];
      const at = join(path, 'root');
      const table = tableOf(prepareRoot(root, links, directoriesOf(shown)), shown, at);
      const fork = ['/bin/sh', '-c', forkInit, 'temper-unshare'];
      const setUp = ['/bin/sh', '-c', script, 'temper-unshare', at, prepareTable(path, table)];
      return [
        ...(command.detached ? [] : [requireProgram('setpriv'), '--pdeathsig=KILL', '--']),
        requireProgram('unshare'),
        ...namespaces,
        ...(runsAsRoot() ? [] : ['--user', '--map-root-user']),
        '--',
        ...fork,
        ...setUp,
        ...limitedCommand(command, true),
      ];
    },
    describe: describeConfinement('unshare'),
  };
}

/** Targets of directory views. Files are mounted over existing files. An absent source counts as well, so that mount reports it. */
function directoriesOf(views: readonly View[]): readonly string[] {
  const isDirectory = ({ source }: View): boolean => statSync(source, { throwIfNoEntry: false })?.isDirectory() ?? true;
  return views.filter(isDirectory).map(({ target }) => target);
}

/** Lists the mounts: the root itself, then the devices, the views and what the kernel provides. */
function tableOf(first: string, views: readonly View[], at: string): string {
  const host = hostMounts();
  return mountTable([
    ...bindTree({ source: first, target: at }, { access: 'ro', host }),
    ...rootDevices.map((path) => bindDevice(path, join(at, path))),
    ...views.flatMap(({ source, target, writable }) =>
      bindTree({ source, target: join(at, target) }, { access: writable ? 'rw' : 'ro', host }),
    ),
    { source: 'temper', target: join(at, '/dev/shm'), type: 'tmpfs', options: sharedMemory },
    { source: 'temper', target: join(at, '/dev/pts'), type: 'devpts', options: terminals },
    { source: 'proc', target: join(at, '/proc'), type: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
  ]);
}

/** Writes the table to a file, since mount reads no table from a pipe. A sandbox has one per account, unless its mounts change. */
function prepareTable(directory: string, table: string): string {
  const fill = (staging: string): void => writeFileSync(join(staging, 'table'), table);
  return join(prepareDirectory(directory, { name: 'mounts', state: table, fill }), 'table');
}

/**
 * Returns the root directory of local commands before anything is mounted in it, a directory below `root`: the links, files for
 * the devices, and directories to mount at. It is mounted read-only, so that all commands can share it.
 */
function prepareRoot(root: string, links: SystemViews['links'], directories: readonly string[]): string {
  const all = { links: [...links, ...deviceLinks], directories: [...ownDirectories, ...directories] };
  const fill = (staging: string): void => {
    for (const path of all.directories) mkdirSync(join(staging, path), { recursive: true });
    for (const path of rootDevices) writeFileSync(join(staging, path), '');
    for (const { target, path } of all.links) symlinkSync(target, join(staging, path));
  };
  return prepareDirectory(root, { name: 'root', state: JSON.stringify(all), fill });
}
