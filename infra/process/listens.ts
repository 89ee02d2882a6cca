import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 50;

/** The state of a listening socket in `/proc/net/tcp`. */
const listening = '0A';

/** Resolves once a process listens on a port itself. Until then, another process may answer there. */
export async function untilListens(pid: number, port: number, signal: AbortSignal): Promise<void> {
  while ((await listensOn(pid, port)) === false) await sleep(pollMs, undefined, { signal });
  signal.throwIfAborted();
}

/**
 * Returns whether a process of this user has a socket that listens on a TCP port. Otherwise another process, which took the port
 * first, may answer there. Returns null on systems other than Linux, whose kernels do not report it.
 */
async function listensOn(pid: number, port: number): Promise<boolean | null> {
  if (process.platform !== 'linux') return null;
  const [sockets, held] = await Promise.all([socketsOn(pid, port), socketsOf(pid)]);
  return sockets.some((inode) => held.has(`socket:[${inode}]`));
}

/** The inodes of all sockets in a process's network that listen on a port. */
async function socketsOn(pid: number, port: number): Promise<string[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((table) => unlessGone(readFile(`/proc/${pid}/net/${table}`, 'utf8'), '')),
  );
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return tables.flatMap((table) =>
    table.split('\n').flatMap((line) => {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      return inode !== undefined && local?.endsWith(wanted) && state === listening ? [inode] : [];
    }),
  );
}

async function socketsOf(pid: number): Promise<Set<string>> {
  const directory = `/proc/${pid}/fd`;
  const files = await unlessGone(readdir(directory), []);
  return new Set(await Promise.all(files.map((file) => unlessGone(readlink(`${directory}/${file}`), ''))));
}

/** Returns the answer, or `otherwise` if the process has ended or closed the file meanwhile, or the kernel lacks the protocol. */
async function unlessGone<T>(asked: Promise<T>, otherwise: T): Promise<T> {
  return await asked.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return otherwise;
    throw error;
  });
}
