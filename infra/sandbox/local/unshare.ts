/**
 * Confinement by util-linux alone, where bubblewrap is missing: the same namespaces, set up by a shell script.
 * Not as root, the command is uid 0 of a user namespace, without capabilities, and the caller's uid outside of it.
 */
import { join } from 'node:path';
import { runsAsRoot } from './accounts.ts';
import type { ConfinedCommand, Confinement } from './confinement.ts';
import { describeConfinement } from './description.ts';
import { limitedCommand } from './limits.ts';
import { requireProgram } from './programs.ts';
import { sandboxViews, systemView } from './system.ts';

/**
 * Runs as the namespace's pid 1: reports itself, builds a root of binds, moves into it and becomes the command's init.
 * $1 mount point of the new root, then \`ro|rw SOURCE TARGET\` and \`link TARGET PATH\` up to \`--\`. Once mounted, the root is
 * entered and never named again: by its name, a sandbox that is removed meanwhile would be made anew on the host.
 */
const script = `
set -e
read -r pid rest </proc/self/stat
ns=$(readlink /proc/self/ns/pid); ns=\${ns#pid:[}
printf '{ "child-pid": %s, "pid-namespace": %s }\\n' "$pid" "\${ns%]}" >&5
root=$1; shift
ip link set lo up
hostname sandbox
mount --make-rprivate /
mount -t tmpfs -o mode=755,size=4m temper "$root"
cd "$root"
for d in etc logs run var proc dev .old; do mkdir "$d"; done
mount -t tmpfs -o mode=755,size=64k temper dev
for d in null zero full random urandom tty; do : >"dev/$d"; mount --bind "/dev/$d" "dev/$d"; done
mkdir dev/shm; mount -t tmpfs -o mode=1777,size=64m temper dev/shm
ln -s /proc/self/fd dev/fd
for n in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/\${n%%:*}" "dev/\${n#*:}"; done
mount -o remount,bind,ro,nosuid dev
while [ "$1" != -- ]; do
  case $1 in
    link) ln -s "$2" ".$3" ;;
    *)
      if [ -d "$2" ]; then mkdir -p ".$3"; elif [ ! -e ".$3" ]; then mkdir -p "$(dirname ".$3")"; : >".$3"; fi
      mount --bind "$2" ".$3"
      [ "$1" = rw ] || mount -o remount,bind,ro,nosuid,nodev ".$3" ;;
  esac
  shift 3
done
shift
mount -t proc proc proc
pivot_root . .old; umount -l /.old; rmdir /.old
mount -o remount,bind,ro /
printf '{ "ready": true }\\n' >&5; exec 5>&-
exec "$@"
`;

/** The first child is the namespace's pid 1. unshare's own --fork would report a killed one as exit code 1. */
const forkInit = '"$@"; exit $?';
/** The scripts' tools must be found whatever PATH the command asks for; it gets its own back by \`env\`. */
const toolPath = 'PATH=/usr/sbin:/usr/bin:/sbin:/bin';

export function createUnshare(root: string): Confinement {
  const { views, links } = systemView(root);
  for (const program of ['unshare', 'mount', 'umount', 'pivot_root', 'ip', 'hostname', 'env']) requireProgram(program);
  const namespaces = ['--mount', '--pid', '--net', '--ipc', '--uts'];
  const system = links.flatMap(({ target, path }) => ['link', target, path]);
  return {
    name: 'unshare',
    commandLine: (command) => {
      const shown = [...views, ...sandboxViews(command)];
      return [
        ...(command.detached ? [] : [requireProgram('setpriv'), '--pdeathsig=KILL', '--']),
        ...[requireProgram('unshare'), ...namespaces, ...(runsAsRoot() ? [] : ['--user', '--map-root-user'])],
        ...['--', requireProgram('env'), toolPath, '/bin/sh', '-c', forkInit, 'temper-unshare'],
        ...['/bin/sh', '-c', script, 'temper-unshare'],
        ...[join(command.place.directory, 'root')],
        ...shown.flatMap(({ source, target, writable }) => [writable ? 'rw' : 'ro', source, target]),
        ...[...system, '--', ...limitedCommand(withOwnPath(command), true)],
      ];
    },
    describe: describeConfinement('unshare'),
  };
}

const withOwnPath = (command: ConfinedCommand): ConfinedCommand => ({
  ...command,
  innerEnv: [`PATH=${command.path}`, ...command.innerEnv],
});
