import { keeperDirectory } from '../shell/scripts.ts';
import { userOf } from './accounts.ts';

// The scripts that run in sandboxes as root, in POSIX sh.

/** The directory of a template with the programs that other kinds of sandbox mount, each under its name and version. */
export const programsDirectory = '/opt/temper';

/** Exit code of a template without a program; its name is on stdout. */
export const lacksProgram = 81;

/**
 * Sets a new sandbox up: accounts, directories with their owners, links to the template's programs, and the files of a tar on
 * stdin. Does nothing in a sandbox that is set up. $1 $2 $3 the ids of keeper, grader and agent, $4 the working directory, $5
 * bytes in use on the disk, the rest: pairs of a program and the path at which it is expected.
 */
export const setUp = `
keeper=$1 grader=$2 agent=$3 workdir=$4 used=$5; shift 5
[ ! -e ${keeperDirectory}/ready ] || exit 0
set -e
umask 022
account() {
  grep -q "^$1:" /etc/passwd || echo "$1:x:$2:$2:$1:$3:/bin/sh" >>/etc/passwd
  grep -q "^$1:" /etc/group || echo "$1:x:$2:" >>/etc/group
}
account ${userOf.keeper} "$keeper" /
account ${userOf.grader} "$grader" /root
account ${userOf.agent} "$agent" /home/agent
mkdir -p ${keeperDirectory} /root /home/agent /tests /logs/verifier /logs/agent "$workdir"
chown "$keeper:$keeper" ${keeperDirectory}; chmod 711 ${keeperDirectory}
chown -R "$grader:$grader" /root /tests /logs/verifier; chmod 700 /root /tests /logs/verifier
chown -R "$agent:$agent" /home/agent /logs/agent "$workdir"
chmod 755 /home /home/agent /logs /logs/agent "$workdir"
while [ $# -ge 2 ]; do
  [ -e "${programsDirectory}/$1" ] || { echo "$1"; exit ${lacksProgram}; }
  ln -sfn "${programsDirectory}/$1" "$2"; shift 2
done
tar -x -p -f - -C /
echo "$used" >${keeperDirectory}/used
: >${keeperDirectory}/ready
`;

/** Prints the bytes that were in use on the disk when the sandbox was set up. */
export const usedAtStart = `cat ${keeperDirectory}/used`;

/** Exit code for a directory behind a symlink. */
export const behindLink = 92;

/** Creates a directory of an account, but follows no symlink. $1 path, $2 id. */
export const makeDirectory = `
p=$1; while [ ! -e "$p" ] && [ ! -L "$p" ]; do p=$(dirname "$p"); done
[ "$(readlink -f -- "$p")" = "$p" ] || exit ${behindLink}
mkdir -p -- "$1" && chown "$2:$2" "$1"
`;

/**
 * Ends every process of an account. It stops them first: what is stopped can't fork, and still counts against the account's
 * limit, so that a fork bomb runs out of processes. What has ended counts, too, until it is reaped, which is waited for at the
 * end. Exit code 1: some are still there. $1 id.
 */
export const endAll = `
of() { grep -ls "^Uid:[[:space:]]*$1[[:space:]]" /proc/[0-9]*/status; }
alive() { of "$1" | xargs -r grep -Ls "^State:[[:space:]]*[ZX]" | cut -d/ -f3; }
reap() { m=0; while [ $m -lt 100 ] && [ -n "$(of "$1")" ]; do m=$((m+1)); sleep 0.02; done; }
n=0
while [ $n -lt 50 ]; do
  n=$((n+1)); found=$(alive "$1")
  [ -n "$found" ] || { reap "$1"; exit 0; }
  kill -STOP $found 2>/dev/null
  again=$(alive "$1")
  [ "$again" != "$found" ] && [ $n -lt 25 ] && continue
  kill -KILL $again 2>/dev/null
  sleep 0.02
done
exit 1
`;
