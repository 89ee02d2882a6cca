/** The limits that the kernel enforces on a local command, and the drop to its uid; set inside, before the command runs. */
import { ownerOf, runsAsRoot } from './accounts.ts';
import type { ConfinedCommand } from './confinement.ts';
import { requireProgram } from './programs.ts';

const megabyte = 2 ** 20;
const blockBytes = 512;
const kilobyte = 1_024;
/** A runtime's own mappings come on top of what a program allocates; without room for them node does not even start. */
const dataHeadroomMb = 256;
const openFiles = 4_096;

/**
 * The init of a command's pid namespace: a shell that limits itself, waits for the command alone and reaps what others
 * leave. When it ends, the kernel ends all others, daemons included. Limits hold per process, that on processes per uid.
 * $1 largest file in blocks, $2 data in kilobytes, $3 open files, $4 processes or nothing, $5 working directory.
 */
const script = `
ulimit -c 0; ulimit -f "$1"; ulimit -d "$2"; ulimit -n "$3"
[ -z "$4" ] || ulimit -u "$4" 2>/dev/null || ulimit -p "$4"
cd "$5" || exit 126; shift 5
"$@"; exit $?
`;

/** The command with its init and its limits, under its uid. \`capable\`: the command line so far has capabilities to drop. */
export function limitedCommand(confined: ConfinedCommand, capable: boolean): readonly string[] {
  const { place, account, argv, cwd, innerEnv } = confined;
  const { pids, diskMb, memoryMb } = place.spec;
  const limits = [
    (diskMb * megabyte) / blockBytes,
    ((memoryMb + dataHeadroomMb) * megabyte) / kilobyte,
    openFiles,
    place.group ? '' : pids,
  ];
  const inner = innerEnv.length === 0 ? argv : [requireProgram('env'), ...innerEnv, ...argv];
  const init = ['/bin/sh', '-c', script, 'temper-init', ...limits.map(String), cwd, ...inner];
  if (!capable) return init;
  const { uid, gid } = ownerOf(place.accounts, account);
  const ids = runsAsRoot() ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : [];
  // Another uid clears the signal by which foreground commands follow their caller; it is set again.
  const follow = confined.detached ? [] : ['--pdeathsig=KILL'];
  const rights = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  return [requireProgram('setpriv'), ...ids, ...follow, ...rights, '--', ...init];
}
