import { ownerOf, runsAsRoot } from './accounts.ts';
import type { ConfinedCommand } from './confinement.ts';
import { requireProgram } from './programs.ts';

const megabyte = 2 ** 20;
const blockBytes = 512;
const kilobyte = 1_024;
/** Allowance for a runtime's own mappings, on top of what a program allocates. Without it Node does not even start. */
const dataHeadroomMb = 256;
const openFiles = 4_096;

/**
 * The init of a command's pid namespace: a shell that sets its own limits, waits for the command only, and reaps orphans. When
 * it ends, the kernel ends every other process, including daemons. Limits hold per process; the limit on processes, per uid.
 * $1 largest file in blocks, $2 data in kilobytes, $3 open files, $4 processes or nothing, $5 working directory.
 */
const script = `
ulimit -c 0; ulimit -f "$1"; ulimit -d "$2"; ulimit -n "$3"
[ -z "$4" ] || ulimit -u "$4" 2>/dev/null || ulimit -p "$4"
cd "$5" || exit 126; shift 5
"$@"; exit $?
`;

/**
 * Wraps a command in its init, its kernel-enforced limits and the drop to its uid. `capable` says whether the surrounding command
 * line still has capabilities to drop.
 */
export function limitedCommand(confined: ConfinedCommand, capable: boolean): readonly string[] {
  const { sandbox, account, argv, cwd, innerEnv } = confined;
  const { pids, diskMb, memoryMb } = sandbox.spec;
  const limits = [
    (diskMb * megabyte) / blockBytes,
    ((memoryMb + dataHeadroomMb) * megabyte) / kilobyte,
    openFiles,
    sandbox.group ? '' : pids,
  ];
  const inner = innerEnv.length === 0 ? argv : [requireProgram('env'), ...innerEnv, ...argv];
  const init = ['/bin/sh', '-c', script, 'temper-init', ...limits.map(String), cwd, ...inner];
  if (!capable) return init;
  const { uid, gid } = ownerOf(sandbox.accounts, account);
  const ids = runsAsRoot() ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : [];
  // A change of uid clears the signal that ends foreground commands with their caller, so it is set again.
  const follow = confined.detached ? [] : ['--pdeathsig=KILL'];
  const rights = ['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  return [requireProgram('setpriv'), ...ids, ...follow, ...rights, '--', ...init];
}
