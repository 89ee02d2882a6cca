import { Worker } from 'node:worker_threads';
import { PolicyError } from '../errors.ts';
import { type CallMessage, type EventsMessage, type ReplyMessage, receiveError } from './messages.ts';

/** A worker thread that answers calls, as the main thread sees it. */
export interface Thread {
  /** Calls a method; rejects with a PolicyError if the thread is closed or dies first. */
  call(method: string, ...args: readonly unknown[]): Promise<unknown>;
  readonly crashed: Promise<PolicyError>;
  close(): Promise<void>;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Returns the URL of a thread's file, which is beside this one, as source or compiled. */
function threadUrl(name: string): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new URL(`./${name}.${extension}`, import.meta.url);
}

export function startThread(name: string, data: unknown, onEvents: (message: EventsMessage) => void): Thread {
  const worker = new Worker(threadUrl(name), { workerData: data, name: `policy ${name}` });
  const pending = new Map<number, PendingCall>();
  const crash = Promise.withResolvers<PolicyError>();
  let ended: PolicyError | undefined;
  let nextId = 0;

  const end = (error: PolicyError): void => {
    ended ??= error;
    for (const { reject } of pending.values()) reject(ended);
    pending.clear();
  };
  worker.on('message', (message: ReplyMessage | EventsMessage) => {
    if (message.kind === 'events') return onEvents(message);
    const call = pending.get(message.id);
    pending.delete(message.id);
    if (message.kind === 'result') call?.resolve(message.value);
    else call?.reject(receiveError(message.error));
  });
  const crashWith = (cause: unknown): void => {
    if (ended !== undefined) return;
    const what = cause instanceof Error ? cause.message : String(cause);
    const error = new PolicyError(
      'worker-crashed',
      `${name}: the thread died: ${what}; start a new core`,
      {},
      { cause },
    );
    end(error);
    crash.resolve(error);
  };
  worker.on('error', crashWith);
  worker.on('exit', (code) => crashWith(new Error(`exit code ${code}`)));

  return {
    crashed: crash.promise,
    call(method, ...args) {
      if (ended !== undefined) return Promise.reject(ended);
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const id = nextId++;
      pending.set(id, { resolve, reject });
      worker.postMessage({ kind: 'call', id, method, args } satisfies CallMessage);
      return promise;
    },
    async close() {
      end(new PolicyError('closed', `${name}: the policy core has been closed`));
      await worker.terminate();
    },
  };
}
