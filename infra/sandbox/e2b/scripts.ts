import { keepOwnPrograms, useOwnPrograms } from '../shell/own-programs.ts';
import { keeperDirectory } from '../shell/scripts.ts';
import { userOf } from './accounts.ts';

// The scripts that run in sandboxes as root, in POSIX sh.

/** The directory of a template with the programs that other kinds of sandbox mount, each under its name and version. */
export const programsDirectory = '/opt/temper';

/** The file with the names of the variables that envd gives every command of a sandbox. */
const namesFile = `${keeperDirectory}/names`;
/** The variables by which a shell or a loader runs other files, and which a script may not even start with. */
const hooks = ['LD_PRELOAD', 'LD_LIBRARY_PATH', 'LD_AUDIT', 'BASH_ENV', 'ENV'];
const givenNames = 'TEMPER_GIVEN';
/** The file with the template's values of these variables, and of those that envd itself sets, as commands that export them. */
const hooksFile = `${keeperDirectory}/hooks`;

/**
 * The beginning of every script of temper's own: without what envd gives every command, and with programs that no agent can replace. In
 * a sandbox that is not set up yet the programs are the template's.
 */
export const begin = `
unset ${hooks.join(' ')}
if [ -r ${namesFile} ]; then
  read -r temper_names <${namesFile}
  for temper_name in $temper_names; do case " $${givenNames} " in *" $temper_name "*) ;; *) unset "$temper_name" ;; esac; done
  ${useOwnPrograms}
fi
unset temper_names temper_name ${givenNames}
`;

/** Returns the variables of a script that begins so. */
export const variablesOf = (env: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(hooks.map((name) => [name, ''])),
  ...env,
  [givenNames]: Object.keys(env).join(' '),
});

/**
 * Keeps the template's values of the variables that `begin` takes away, for the commands that enter the image's environment. It is the
 * only script that starts with them, so run it before any agent could change what they name. envd calls the user root.
 */
export const keepHooks = `
umask 022
mkdir -p ${keeperDirectory} || exit
[ "\${USER-}" != root ] || unset USER
[ "\${LOGNAME-}" != root ] || unset LOGNAME
for temper_name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
  case " USER LOGNAME ${hooks.join(' ')} " in *" $temper_name "*) ;; *) unset "$temper_name" ;; esac
done
export -p >${hooksFile}
`;

/** Keeps the image's environment and where temper's own programs are, once `keepHooks` has run. */
export const keepEnvironment = `( set +e; unset HOME USER LOGNAME ${hooks.join(' ')}
[ ! -r ${hooksFile} ] || . ${hooksFile}
${keepOwnPrograms})`;

/** Exit code of a sandbox without a program; its directory below the template's programs is on stdout. */
export const lacksProgram = 81;

/**
 * Sets a new sandbox up: accounts, directories with their owners, links to the template's programs, the files of a tar on stdin, and
 * where temper's own programs are. Does nothing in a sandbox that is set up. $1 $2 $3 the ids of keeper, grader and agent, $4 the working directory, $5
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
places="$workdir /home/agent /logs/agent"
env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p' | grep -vx PATH | tr '\\n' ' ' >${namesFile}
${keepEnvironment}
echo "$used" >${keeperDirectory}/used
: >${keeperDirectory}/ready
`;

/** Installs a program from a tar on stdin among those of the template. Repeatable. $1 its directory. */
export const installProgram = `
umask 022
rm -rf "${programsDirectory}/$1.new" && mkdir -p "${programsDirectory}/$1.new" || exit
tar -x -o -f - -C "${programsDirectory}/$1.new" && rm -rf "${programsDirectory}/$1" && mv "${programsDirectory}/$1.new" "${programsDirectory}/$1"
`;

/** Succeeds in a sandbox that is set up. */
export const isSetUp = `[ -e ${keeperDirectory}/ready ]`;

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
 * Ends every process of an account, and returns once all of them have been reaped, because what has ended still counts against
 * the account's limit of processes. A pass over /proc stops each process as soon as it has read its state and starts no process of
 * its own: what is stopped can't fork, and still counts against the limit, so that a fork bomb runs out of processes. Exit code 1:
 * some are still there. $1 id.
 */
export const endAll = `
pass() {
  alive=0 moving=0 ended=0
  for p in /proc/[0-9]*; do
    state= id=
    { while read -r key value rest; do
      case $key in State:) state=$value ;; Uid:) id=$value; break ;; esac
    done <"$p/status"; } 2>/dev/null
    [ "$id" = "$2" ] || continue
    case $state in [ZX]) ended=1; continue ;; [!Tt]) moving=1 ;; esac
    alive=1; kill -"$1" "\${p#/proc/}" 2>/dev/null
  done
}
n=0
while [ $n -lt 200 ]; do
  n=$((n+1)); pass STOP "$1"
  [ $alive$ended != 00 ] || exit 0
  [ $moving = 1 ] && [ $n -lt 100 ] && continue
  [ $alive = 0 ] || pass KILL "$1"
  sleep 0.02
done
[ $alive = 0 ]
`;
