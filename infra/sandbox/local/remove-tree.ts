import { Worker } from 'node:worker_threads';

/** A directory for the thread to remove. */
export interface Removal {
  readonly id: number;
  readonly path: string;
}

/** The end of a removal, with the error if it failed. */
export interface RemovalEnd {
  readonly id: number;
  readonly error?: { readonly message: string; readonly code?: string };
}

interface RemovalThread {
  readonly worker: Worker;
  readonly pending: Map<number, PromiseWithResolvers<void>>;
}

let current: RemovalThread | undefined;
let lastId = 0;

/**
 * Removes a directory with all that is in it. A thread of this process does so, one directory after another: a removal
 * takes many small steps that wait for the disk. The event loop would wait with them, and sending each step to another
 * thread and back takes several times the CPU time.
 */
export async function removeTree(path: string): Promise<void> {
  current ??= startThread();
  const { worker, pending } = current;
  lastId += 1;
  const end = Promise.withResolvers<void>();
  pending.set(lastId, end);
  worker.ref();
  worker.postMessage({ id: lastId, path } satisfies Removal);
  await end.promise;
}

function startThread(): RemovalThread {
  const pending: RemovalThread['pending'] = new Map();
  // The thread's file lies beside this one, as source or compiled.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./remove-tree-thread.${extension}`, import.meta.url), { name: 'removals' });
  worker.on('message', ({ id, error }: RemovalEnd) => {
    const end = pending.get(id);
    pending.delete(id);
    // A process may end while nothing is being removed.
    if (pending.size === 0) worker.unref();
    if (error === undefined) end?.resolve();
    else end?.reject(Object.assign(new Error(error.message), { code: error.code }));
  });
  const failAll = (error: unknown): void => {
    if (current?.worker === worker) current = undefined;
    for (const end of pending.values()) end.reject(error);
    pending.clear();
  };
  worker.on('error', failAll);
  worker.on('exit', (code) => failAll(new Error(`the thread that removes directories ended with code ${code}`)));
  return { worker, pending };
}
