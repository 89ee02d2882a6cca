import { killedCode } from '../exit-status.ts';
import { keepLog } from '../keep-log.ts';

// The shell scripts that run inside sandboxes, in POSIX sh with the tools of every Debian, Alpine or Fedora image. Each finds its
// programs where no agent can put one; see own-programs.ts.
//
// A detached process is two commands. The recorder runs as the keeper, owns the claim, the log and the result, and learns of the
// end through a FIFO. The command runs under its account and holds nothing but the write ends of FIFOs.

/** The directory of the keeper's files. It should be a mount of its own, since not even the image's root can move a mount point. */
export const keeperDirectory = '/.temper';

/**
 * Sets the limits of one command: $1 processes of its uid, $2 largest file in blocks of 512 bytes. Shells differ in -u and -p.
 */
const limit = `
limit() { ulimit -u "$1" 2>/dev/null || ulimit -p "$1" 2>/dev/null; ulimit -f "$2"; ulimit -c 0; }
`;

/** Functions that print how many processes the kernel has ended in this sandbox because its memory was full. */
const oomKills = `
count() { for f in "$@"; do [ -r "$f" ] || continue; while read -r k v; do [ "$k" = "$name" ] && { echo "$v"; return; }; done <"$f"; done; echo 0; }
oom() { name=oom_kill; count /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; }
`;

/** Prints how many processes the kernel has ended in this sandbox because its memory was full. */
export const countOomKills = `${oomKills}
oom`;

/**
 * Defines `alive`, which tells whether a process exists and has not ended. One that was killed may remain as a zombie for as long as its
 * parent doesn't reap it, and a signal still reaches that; envd reaps only when every holder of the output has ended.
 */
const aliveByState = `
alive() {
  [ -n "$1" ] && { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  case \${stat##*) } in [ZX]*) return 1 ;; esac
}
`;

/** The largest log that a recorder sends at the end of its process; a longer one is read from its file. */
export const sentLogBytes = 16_384;

/**
 * The recorder of a detached process. Prints `claimed` or `already-started`, then `live`, then the result, then the word `quiet` or
 * `busy` with the length of the log, and a quiet process's log unless it is long. It is quiet if nothing else is left in the
 * sandbox: the kernel counts its tasks, so no process escapes by forking. A process takes a moment to disappear after its end.
 * The command's account may write anything into the FIFO of the end, and the shell's own `read` would take all of a line.
 * $1 key, $2 token, $3 log cap in blocks, $4 process limit, $5 tasks of a quiet sandbox, 0 if they can't be counted.
 */
export const recorder = `
trap '' PIPE HUP
d=${keeperDirectory}/$1 token=$2 blocks=$3 most=$4 own=$5
${oomKills}${aliveByState}peak() { for f in /sys/fs/cgroup/pids.peak /sys/fs/cgroup/pids/pids.peak; do [ -r "$f" ] && { cat "$f"; return; }; done; echo 0; }
mkdir -m 711 "$d" 2>/dev/null || { [ -d "$d" ] || exit 1; echo already-started; exit 0; }
echo $$ >"$d/pid"
mkfifo -m 622 "$d/out.$token" "$d/end.$token" || exit 1
before=$(oom); echo "$before" >"$d/oom"
echo claimed
${keepLog}{ keep "$d/log"; } <"$d/out.$token" &
cat=$!
exec 4<"$d/end.$token"
now=; read -r now rest </proc/uptime; echo "\${now%%.*}" >"$d/live"; echo live
code=$(dd bs=16 count=1 <&4 2>/dev/null)
case $code in '' | *[!0-9]* | ????*) code=${killedCode} ;; esac
n=0; while alive $cat && [ $n -lt 40 ] || { [ -e "$d/log.rest" ] && [ $n -lt 2000 ]; }; do n=$((n+1)); sleep 0.005; done
hit=
[ "$(peak)" -ge "$most" ] && hit=pids
[ "$(oom)" -gt "$before" ] && hit=memory
[ -r "$d/limit" ] && read -r hit <"$d/limit"
echo "$code $hit" >"$d/exit.new"; mv "$d/exit.new" "$d/exit"
rm -f "$d/out.$token" "$d/end.$token"
echo "exited $code $hit"
tasks() { for f in /sys/fs/cgroup/pids.current /sys/fs/cgroup/pids/pids.current; do [ -r "$f" ] && { read -r tasks <"$f"; return; }; done; tasks=; }
n=0; state=busy
while [ "$own" -gt 0 ] && tasks && [ -n "$tasks" ] && [ $n -lt 10 ]; do
  [ "$tasks" -gt "$own" ] || { state=quiet; break; }
  n=$((n+1)); sleep 0.005
done
size=0; [ ! -r "$d/log" ] || size=$(wc -c <"$d/log")
echo "$state $size"
[ $state = busy ] || [ $size -gt ${sentLogBytes} ] || [ $size -eq 0 ] || cat "$d/log"
`;

const unpackHere = 'mkdir -p -- "$1" 2>/dev/null && [ -w "$1" ] || exit 95; tar -x -p -o -f - -C "$1"';

/** Unpacks a tar from stdin. Exit code 95: this account can't create the directory. $1 directory. */
export const unpack = `${unpackHere}`;

/**
 * A detached command. $1 the directory for a tar on stdin, empty if there is none, $2 key, $3 token, $4 $5 limits, $6 working
 * directory, the rest: the command. Exit codes before the command runs: 95 as for `unpack`, 96 if the tar could not be unpacked,
 * 97 if the program that unpacks it was killed.
 */
export const detached = `${limit}
[ -z "$1" ] || { ${unpackHere} || { [ $? -le 128 ] && exit 96; exit 97; }; }
shift
exec 3>"${keeperDirectory}/$1/end.$2" || exit 1
exec </dev/null >"${keeperDirectory}/$1/out.$2" 2>&1
limit "$3" "$4"; cd "$5" || { echo 126 >&3; exit; }; shift 5
"$@" 3>&-
echo $? >&3
`;

/**
 * A foreground command. $1 $2 limits, $3 seconds until it ends even if its caller is dead, $4 working directory, the rest: the
 * command.
 */
export const foreground = `${limit}
limit "$1" "$2"; seconds=$3; cd "$4" || exit 126; shift 4
if command -v timeout >/dev/null; then exec timeout -s KILL "$seconds" "$@"; fi
exec "$@"
`;

/** A command whose stdin and stdout are a stream to the host. $1 $2 limits, $3 working directory, the rest: the command. */
export const streamed = `${limit}
limit "$1" "$2"; cd "$3" || exit 126; shift 3
exec "$@"
`;

/** The state of a process whose recorder is gone since the kernel ended processes because memory was full. */
export const killedForMemory = 'killed-for-memory';

/** Prints one line: the state of a process, then its details. $1 key. */
export const status = `
${oomKills}${aliveByState}d=${keeperDirectory}/$1
look() { [ -r "$d/exit" ] && { read -r line <"$d/exit"; echo "exited $line"; exit; }; }
[ -d "$d" ] || { echo absent; exit; }
look
[ -r "$d/pid" ] && read -r pid <"$d/pid" && alive "$pid" && [ -e "$d/live" ] && { echo running; exit; }
look
[ -e "$d/live" ] || { echo unknown claimed, never started; exit; }
before=; [ -r "$d/oom" ] && read -r before <"$d/oom"
[ -n "$before" ] && [ "$(oom)" -gt "$before" ] && { echo ${killedForMemory}; exit; }
echo unknown its recorder is gone without a result
`;

/** Waits until the process has ended or $2 seconds have passed, then does the same as `status`. */
export const watchStatus = `
${aliveByState}d=${keeperDirectory}/$1 pid= n=0 most=$(($2 * 4))
[ -r "$d/pid" ] && read -r pid <"$d/pid"
while [ $n -lt $most ] && [ -e "$d/live" ] && [ ! -e "$d/exit" ] && alive "$pid"; do
  if [ $n -lt 8 ]; then sleep 0.25; n=$((n+1)); else sleep 1; n=$((n+4)); fi
done
${status}`;

/** Records the limit that ended a process; the first one stays. $1 key, $2 the limit. */
export const noteLimit = `d=${keeperDirectory}/$1; [ -d "$d" ] && { [ -e "$d/limit" ] || echo "$2" >"$d/limit"; }`;

/** Prints the seconds since the start of a process, by the clock that began at boot; 0 if it was never started. $1 key. */
export const age = `
read -r now rest </proc/uptime; now=\${now%%.*}
began=; [ ! -r "${keeperDirectory}/$1/live" ] || read -r began <"${keeperDirectory}/$1/live"
case $began in '' | *[!0-9]*) began=$now ;; esac
echo $((now - began))
`;

/** Prints a part of a log, and the log's size to stderr. $1 key, $2 first byte counted from 1, $3 maximum of bytes. */
export const readLog = `
log=${keeperDirectory}/$1/log; [ -r "$log" ] || { echo 0 >&2; exit 0; }
wc -c <"$log" >&2; tail -c "+$2" "$log" | head -c "$3"
`;

/** Prints a file, or exits with a code of 90 to 94 that says why it can't. $1 path, $2 maximum of bytes. */
export const readFile = `
real=$(readlink -f -- "$1") || exit 94
[ "$real" = "$1" ] || exit 92
[ -e "$1" ] || { [ -r "$(dirname "$1")" ] && exit 90; exit 94; }
[ -f "$1" ] || exit 91
[ -r "$1" ] || exit 94
[ "$(wc -c <"$1")" -le "$2" ] || exit 93
exec cat -- "$1"
`;

/**
 * Ends every process of this uid that has an environment entry, and looks for more until there are no more. Exit code 1: they
 * appear faster than they can be found. $1 the entry.
 */
export const killMarked = `
n=0
while [ $n -lt 5 ]; do
  n=$((n+1)); found=
  for p in /proc/[0-9]*; do
    tr '\\0' '\\n' <"$p/environ" 2>/dev/null | grep -qxF "$1" && { kill -9 "\${p#/proc/}" 2>/dev/null && found=1; }
  done
  [ -n "$found" ] || exit 0
done
exit 1
`;

/** Ends every process of this uid but itself. The kernel holds one lock meanwhile, so a fork bomb can't outrun it. */
export const killAll = 'kill -9 -1 2>/dev/null; exit 0';

/**
 * Ends root's own processes in a container that root started: all but the shell itself, the init and the first process after it,
 * which keeps the container alive.
 */
export const killRoot = `
first=
for p in /proc/[0-9]*; do p=\${p#/proc/}; [ "$p" -eq 1 ] || { [ -n "$first" ] && [ "$p" -gt "$first" ]; } || first=$p; done
for p in /proc/[0-9]*; do
  pid=\${p#/proc/}
  [ "$pid" -eq 1 ] || [ "$pid" -eq "$first" ] || [ "$pid" -eq $$ ] || { [ -O "$p" ] && kill -9 "$pid" 2>/dev/null; }
done
exit 0
`;

/** The exit codes of a workdir that the agent can't be given. */
export const notAdopted = { owned: 3, link: 11, mount: 12, otherOwner: 13, closed: 14, closedAbove: 15 } as const;

/**
 * Copies a directory that this account doesn't own. Its directories become writable for the account, which are so for root. $1 working
 * directory of the image, $2 an empty directory of this account.
 */
export const adoptCopy = `
[ -O "$1" ] && exit ${notAdopted.owned}
[ ! -L "$1" ] || exit ${notAdopted.link}
[ -e "$1" ] || exit ${notAdopted.closedAbove}
[ -r "$1" ] && [ -x "$1" ] || exit ${notAdopted.closed}
[ "$(stat -c %d "$1")" = "$(stat -c %d "$2")" ] || exit ${notAdopted.mount}
cp -a --no-preserve=ownership "$1/." "$2/" 2>/dev/null || cp -R -P -p "$1/." "$2/" || exit ${notAdopted.closed}
find "$2" -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null; true
`;
/** Replaces the directory $1 by $2. Nothing is removed unless all can be. */
export const adoptSwap = `
[ -w "$(dirname "$1")" ] || exit ${notAdopted.otherOwner}
if command -v find >/dev/null; then
  [ -z "$(find "$1" -type d ! -user 0 2>&1 | head -n 1)" ] || exit ${notAdopted.otherOwner}
  find "$1" -type d ! -perm -700 -exec chmod u+rwx {} +
fi
rm -rf "$1" && mv "$2" "$1"
`;
