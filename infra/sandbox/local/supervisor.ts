import type { Spawner } from '../../process/spawner/spawner.ts';
import { keepLog } from '../keep-log.ts';
import type { ControlGroup } from './control-group.ts';

/**
 * The supervisor's script. Its files are named relative to the control directory, which may be renamed meanwhile. $1 control
 * directory, $2 log cap in blocks of 512 bytes, $3 uid that may reopen its output by name (/dev/stderr) or nothing, $4 directories
 * and $5 $6 event files of the control group or nothing, the rest: the confined command.
 */
const script = `
cd "$1" || exit 1; blocks=$2 uid=$3 groups=$4 memory=$5 pids=$6; shift 6
identify() { printf '%s %s\\n' "$1" "\${22}" >pid; }
read -r stat </proc/$$/stat; identify $stat
count() { n=0; [ -r "$1" ] || return; while read -r k v; do [ "$k" != "$2" ] || n=$v; done <"$1"; }
count "$memory" oom_kill; oom=$n; count "$pids" max; full=$n
exec >/dev/null
own() { [ -z "$uid" ] || /bin/chown "$uid" /proc/self/fd/1; }
join() { for g in $groups; do echo 0 >"$g/cgroup.procs" || exit 1; done; }
run() { ( own; join; echo 500 >/proc/self/oom_score_adj; exec "$@" 5>child 3>&- 4>&- ) }
${keepLog}code=$( { { run "$@" 2>&1; echo $? >&3; } | ( PATH=/usr/bin:/bin; keep log ); } 3>&1 )
count "$pids" max; hit=; [ "$n" -le "$full" ] || hit=pids
count "$memory" oom_kill; [ "$n" -le "$oom" ] || hit=memory
[ -z "$hit" ] || [ -e limit ] || printf '%s' "$hit" >limit
printf '%s\\n' "$code" >exit
`;

export interface SupervisedCommand {
  readonly control: string;
  readonly logBytes: number;
  readonly uid: number | undefined;
  readonly group: ControlGroup | undefined;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Starts the supervisor of a detached process, a small shell in a session of its own that outlives the worker. It runs the confined
 * command from outside the sandbox, and keeps the head and tail of its output as a log and its exit code as a result. The command
 * holds a pipe and never the log itself, so it can't rewrite earlier output. Resolves once the supervisor has written its pid.
 */
export async function supervise(
  spawner: Spawner,
  { control, logBytes, uid, group, argv, env }: SupervisedCommand,
): Promise<void> {
  const blocks = String(Math.ceil(logBytes / 512));
  const joined = [group?.directories.join(' ') ?? '', group?.memoryEvents ?? '', group?.pidsEvents ?? ''];
  const args = ['-c', script, 'temper-supervisor', control, blocks, String(uid ?? ''), ...joined, ...argv];
  await spawner.launch({ argv: ['/bin/sh', ...args], env });
}
