import { randomUUID } from 'node:crypto';
import { lstatSync, renameSync, rmSync } from 'node:fs';
import type { ListenOptions, Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { listenOn } from './listen-on.ts';

/** A server on a unix socket. */
export interface ServerAtPath {
  /** Stops listening, and removes the socket unless another server has replaced it. Repeatable. */
  close(): void;
}

/**
 * Listens on a unix socket, in place of whatever has that path. Node removes the path on which a server was made to listen when the
 * server closes, also if another one listens there by then; so the socket is made under a name of its own, and then moved.
 */
export async function listenAtPath(
  server: Server,
  { path, ...options }: ListenOptions & { readonly path: string },
  onError: (error: unknown) => void,
): Promise<ServerAtPath> {
  const draft = join(dirname(path), draftNameOf(basename(path)));
  await listenOn(server, { ...options, path: draft }, onError);
  const own = lstatSync(draft, { bigint: true });
  renameSync(draft, path);
  let isClosed = false;
  return {
    close() {
      if (isClosed) return;
      isClosed = true;
      // The number of the file is not given again before its server is closed.
      const there = lstatSync(path, { bigint: true, throwIfNoEntry: false });
      if (there?.ino === own.ino && there.dev === own.dev) rmSync(path, { force: true });
      server.close();
    },
  };
}

/** Returns an unused name that is no longer than the one it stands for: the path of a socket has at most 107 bytes. */
const draftNameOf = (name: string): string =>
  `.${randomUUID()
    .replaceAll('-', '')
    .slice(0, name.length - 1)}`;
