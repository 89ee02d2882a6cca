import { type MessagePort, parentPort } from 'node:worker_threads';
import { type CallMessage, type ReplyMessage, sendError } from './messages.ts';

export type Methods = Readonly<Record<string, (args: readonly unknown[]) => unknown>>;

/** Answers the main thread's calls by a table of methods. */
export function serveCalls(methods: Methods, afterCall: () => void = () => {}): MessagePort {
  if (parentPort === null) throw new Error('policy thread: it must run in a worker thread, not in the main thread');
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
    if (run === undefined) throw new Error(`policy thread: unknown method ${method}`);
    return { kind: 'result', id, value: await run(args) };
  } catch (error) {
    return { kind: 'error', id, error: sendError(error) };
  }
}
