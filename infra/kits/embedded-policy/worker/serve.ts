import { type MessagePort, parentPort } from 'node:worker_threads';
import { type CallMessage, type ReplyMessage, sendError } from './messages.ts';

/** The thread's end of calls: answers them by a table of methods. */

export type Methods = Readonly<Record<string, (args: readonly unknown[]) => unknown>>;

export function serveCalls(methods: Methods, afterCall: () => void = () => {}): MessagePort {
  if (parentPort === null) throw new Error('policy thread: expected to run in a worker thread, got the main thread');
  const port = parentPort;
  port.on('message', (call: CallMessage) => {
    void answer(methods, call).then((reply) => port.postMessage(reply));
    afterCall();
  });
  return port;
}

async function answer(methods: Methods, { id, method, args }: CallMessage): Promise<ReplyMessage> {
  try {
    const run = methods[method];
    if (run === undefined) throw new Error(`policy thread: expected a known method, got ${method}`);
    return { kind: 'result', id, value: await run(args) };
  } catch (error) {
    return { kind: 'error', id, error: sendError(error) };
  }
}
