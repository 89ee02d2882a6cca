/**
 * Confinement by util-linux alone, where bubblewrap is missing: the same namespaces, set up by a shell script.
 * Not as root, the command is uid 0 of a user namespace, without capabilities, and the caller's uid outside of it.
 * Each program that the script starts costs a millisecond or two of every command, so it starts few.
 */
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runsAsRoot } from './accounts.ts';
import type { Confinement } from './confinement.ts';
import { describeConfinement } from './description.ts';
import { limitedCommand } from './limits.ts';
import { bindDevice, bindTree, hostMounts, mountTable } from './mount-table.ts';
import { prepareDirectory } from './prepared.ts';
import { requireProgram } from './programs.ts';
import { oldRoot, prepareRoot, rootDevices } from './root.ts';
import { sandboxViews, systemView, type View } from './system.ts';

/**
 * Runs as the namespace's pid 1: reports itself, builds its root, moves into it and becomes the command's init.
 * $1 where the root is mounted, $2 the table of mounts, the rest: the command. It makes no directory: by its name, a sandbox
 * that is removed meanwhile would be made anew on the host. The PATH is that of its tools, whatever the command asks for.
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

/** The first child is the namespace's pid 1. unshare's own --fork would report a killed one as exit code 1. */
const forkInit = '"$@"; exit $?';
const sharedMemory = ['mode=1777', 'size=64m', 'nosuid', 'nodev'];

const tools = ['unshare', 'mount', 'umount', 'pivot_root', 'ip', 'hostname'];

export function createUnshare(root: string): Confinement {
  const { views, links } = systemView(root);
  for (const program of tools) requireProgram(program);
  const namespaces = ['--mount', '--pid', '--net', '--ipc', '--uts'];
  return {
    name: 'unshare',
    commandLine: (command) => {
      const { directory } = command.place;
      const shown = [...views, ...sandboxViews(command)];
      const at = join(directory, 'root');
      const table = tableOf(prepareRoot(root, links, directoriesOf(shown)), shown, at);
      return [
        ...(command.detached ? [] : [requireProgram('setpriv'), '--pdeathsig=KILL', '--']),
        ...[requireProgram('unshare'), ...namespaces, ...(runsAsRoot() ? [] : ['--user', '--map-root-user'])],
        ...['--', '/bin/sh', '-c', forkInit, 'temper-unshare'],
        ...['/bin/sh', '-c', script, 'temper-unshare', at, prepareTable(directory, table)],
        ...limitedCommand(command, true),
      ];
    },
    describe: describeConfinement('unshare'),
  };
}

/** Files are shown in the place of others, which are there. What is absent gets a place too, for mount to say what it misses. */
function directoriesOf(views: readonly View[]): readonly string[] {
  const isDirectory = ({ source }: View): boolean => statSync(source, { throwIfNoEntry: false })?.isDirectory() ?? true;
  return views.filter(isDirectory).map(({ target }) => target);
}

/** The root itself, then the devices, the views and what the kernel provides. */
function tableOf(first: string, views: readonly View[], at: string): string {
  const host = hostMounts();
  return mountTable([
    ...bindTree({ source: first, target: at }, { access: 'ro', host }),
    ...rootDevices.map((path) => bindDevice(path, join(at, path))),
    ...views.flatMap(({ source, target, writable }) =>
      bindTree({ source, target: join(at, target) }, { access: writable ? 'rw' : 'ro', host }),
    ),
    { source: 'temper', target: join(at, '/dev/shm'), type: 'tmpfs', options: sharedMemory },
    { source: 'proc', target: join(at, '/proc'), type: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
  ]);
}

/** mount reads no table from a pipe. A sandbox has one for each account, unless its mounts change. */
function prepareTable(directory: string, table: string): string {
  const fill = (staging: string): void => writeFileSync(join(staging, 'table'), table);
  return join(prepareDirectory(directory, { name: 'mounts', state: table, fill }), 'table');
}
