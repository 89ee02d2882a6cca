import { join } from 'node:path';
import type Docker from 'dockerode';
import { readKernelFile } from '../../machine/kernel-files.ts';
import { createDirectSpawner } from '../../process/spawner/direct.ts';
import { SandboxFailure } from '../failure.ts';
import { callDaemon } from './daemon.ts';

/** The directories in which the script finds the programs that it uses. */
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The processes of a container to end, by their uids on the host: those of one uid, or all but those of one uid and these. */
export type Ended = { readonly only: number } | { readonly allBut: number; readonly kept: readonly number[] };

/**
 * Freezes a group of processes, kills those to end, and thaws it. Its arguments are the directory of the group, `only` or `allBut`,
 * a uid, and the pids to keep. It is a program of its own so that it thaws the group also if the host worker dies meanwhile.
 */
const script = `
group=$1 rule=$2 named=$3
shift 3
kept=" $* "
if [ -e "$group/freezer.state" ]; then
  set_state() { echo "$1" >"$group/freezer.state"; }
  frozen=FROZEN thawed=THAWED
  is_frozen() { [ "$(cat "$group/freezer.state")" = FROZEN ]; }
else
  set_state() { echo "$1" >"$group/cgroup.freeze"; }
  frozen=1 thawed=0
  is_frozen() { grep -q '^frozen 1' "$group/cgroup.events"; }
fi
set_state $frozen || exit 1
trap 'set_state $thawed' EXIT
tries=0
# A process that waits for a disk can't be frozen, and can't fork either. The state is set again for new processes.
until is_frozen || [ $tries -eq 200 ]; do sleep 0.05; set_state $frozen; tries=$((tries + 1)); done
while read -r pid; do
  case $kept in *" $pid "*) continue ;; esac
  uid=
  while read -r name real rest; do [ "$name" = Uid: ] && uid=$real && break; done 2>/dev/null <"/proc/$pid/status"
  # It has ended.
  [ -n "$uid" ] || continue
  if [ "$rule" = only ]; then [ "$uid" = "$named" ] || continue; else [ "$uid" != "$named" ] || continue; fi
  kill -9 "$pid" 2>/dev/null || [ ! -e "/proc/$pid" ] || exit 1
done <"$group/cgroup.procs"
exit 0
`;

/**
 * Ends processes of a container from the host while the kernel has frozen it: processes that would kill the killer first, or that
 * leave no memory for it. The daemon's own pause could deadlock: a command that it is starting in the container waits for the
 * thaw, and the daemon waits for that command. Requires the rights of root on the daemon's machine. Throws SandboxUnavailable.
 */
export async function endFrozen(container: Docker.Container, ended: Ended): Promise<void> {
  const { Id, State } = await callDaemon(() => container.inspect());
  const group = groupOf(Id, State.Pid);
  if (group === null)
    throw cannotEnd('the container is not on this machine, or the host worker does not see its processes');
  const [rule, uid, kept] = 'only' in ended ? ['only', ended.only, []] : ['allBut', ended.allBut, ended.kept];
  const argv = ['sh', '-c', script, 'temper', group, rule, String(uid), ...kept.map(String)];
  const { exitCode, stderr } = await createDirectSpawner().start({
    argv,
    env: { PATH: searchPath },
    maxOutputBytes: 1_000,
  }).ended;
  if (exitCode !== 0) throw cannotEnd(stderr.toString().trim() || `exit code ${exitCode}`);
}

/**
 * Returns the directory of a container's group in the freezer of this machine's kernel; null if the process with this pid is not
 * here, or is that of something else.
 */
function groupOf(id: string, init: number): string | null {
  const lines = (readKernelFile(`/proc/${init}/cgroup`) ?? '').split('\n').map((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    return { controllers: controllers.split(','), path };
  });
  const first = lines.find(({ controllers }) => controllers.includes('freezer'));
  const { path } = first ?? lines.find(({ controllers }) => controllers.includes('')) ?? { path: '' };
  return path.includes(id) ? join('/sys/fs/cgroup', first === undefined ? '' : 'freezer', path) : null;
}

const cannotEnd = (evidence: string): SandboxFailure =>
  new SandboxFailure(
    'SandboxUnavailable',
    'expected to end the processes of a sandbox from the host; run the host worker as root on the machine of the Docker daemon',
    { evidence },
  );
