import { posix } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** Directories of the system, of all accounts, or of temper's own files, which are more than a task's work. */
const shared: ReadonlySet<string> = new Set(
  (
    '/ /bin /boot /etc /home /home/agent /lib /lib32 /lib64 /libx32 /logs /root /run /sbin /solution /tmp ' +
    '/usr /usr/bin /usr/lib /usr/local /usr/local/bin /usr/sbin /usr/share /var /var/lib /var/tmp'
  ).split(' '),
);
/** Directories in which nothing can be a task's work either. */
const closed = ['/.temper', '/dev', '/gw', '/logs/agent', '/logs/verifier', '/proc', '/sys', '/tests'] as const;

/**
 * Returns a workdir without needless parts. Throws UnsupportedTask for a directory that is more than a task's work: each sandbox
 * would get a copy of it, and its files would be the agent's.
 */
export function requireOwnDirectory(workdir: string): string {
  const path = posix.resolve('/', workdir);
  if (!shared.has(path) && !closed.some((one) => path === one || path.startsWith(`${one}/`))) return path;
  throw new TemperFailure(
    'UnsupportedTask',
    `expected a workdir of the task's own, got ${path}, which has files of the system or of temper; move the work to a directory such as /app, and name it by WORKDIR in environment/Dockerfile or environment.workdir in task.toml`,
  );
}

/**
 * Gives the directory $1 of an image to root, so that each sandbox can replace it by its agent's copy. What belongs to root and can be
 * read by all keeps its owner and mode. A link changes places with the directory that it leads to. Where the image lacks a
 * program for that, the sandbox says what is wrong.
 */
const giveToRoot = `
command -v find >/dev/null && [ -d "$1" ] || exit 0
if [ -L "$1" ]; then
  real=$(readlink -f "$1") || exit 0
  case $real in ${[...shared].join('|')}) exit 0 ;; esac
  rm "$1" && mv "$real" "$1" && ln -s "$1" "$real" || exit
fi
find "$1" ! -user 0 -exec chown -h 0:0 {} +
find "$1" -type d ! -perm -755 -exec chmod u+w,a+rx {} +
find "$1" -type f ! -perm -444 -exec chmod a+rX {} +
above=$(dirname "$1")
while [ "$above" != / ] && [ "$above" != /root ]; do
  chown 0:0 "$above" && chmod u+w,a+rx "$above"
  above=$(dirname "$above")
done
exit 0
`;

/** Returns the last lines of a build, which prepare the workdir for agents who are not root. `user` is the account of its commands. */
export const workdirLines = (workdir: string, user: string | null): readonly string[] => [
  'USER root',
  `RUN ${JSON.stringify(['sh', '-c', giveToRoot, 'sh', workdir])}`,
  ...(user === null ? [] : [`USER ${user}`]),
];
