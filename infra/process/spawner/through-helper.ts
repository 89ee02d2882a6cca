import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { fromSent, type HelperReply, type HelperRequest } from './messages.ts';
import { type EndedCommand, HelperLostError, type Spawner } from './spawner.ts';

/** Limits of the helper's heap. It holds nothing but the output of the commands that run, and buffers are outside of the heap. */
const heapOptions = ['--max-old-space-size=64', '--max-semi-space-size=1'];

interface Pending {
  resolve(reply: HelperReply): void;
  reject(error: Error): void;
}

interface Helper {
  send(request: HelperRequest): void;
  /** Sends a request, and waits for its reply. */
  ask(request: HelperRequest): Promise<HelperReply>;
  close(): Promise<void>;
}

/**
 * Creates the spawner of a long-lived process that grows large. A helper starts its commands, so that no fork copies its page
 * tables. The helper starts with the first command; if it ends, its commands fail with `HelperLostError`, and the next command
 * starts another one. It ends with this process, however that ends.
 */
export function createHelperSpawner(): Spawner {
  let helper: Helper | undefined;
  let lastId = 0;
  const open = (): Helper => {
    const opened = openHelper(() => {
      if (helper === opened) helper = undefined;
    });
    helper = opened;
    return opened;
  };
  return {
    start: (command) => {
      const id = ++lastId;
      const used = helper ?? open();
      return {
        ended: used.ask({ id, start: command }).then(endOf),
        kill: () => used.send({ id, kill: true }),
      };
    },
    launch: async (program) => {
      await (helper ?? open()).ask({ id: ++lastId, launch: program });
    },
    close: async () => helper?.close(),
  };
}

function openHelper(onLost: () => void): Helper {
  const pending = new Map<number, Pending>();
  const child = startHelper();
  const lose = (cause?: unknown): void => {
    onLost();
    for (const { reject } of pending.values()) reject(new HelperLostError(cause));
    pending.clear();
  };
  child.on('error', lose);
  child.on('disconnect', lose);
  child.on('message', (reply: HelperReply) => {
    const waiting = pending.get(reply.id);
    pending.delete(reply.id);
    // Nothing waits, so the helper alone must not keep this process running.
    if (pending.size === 0) child.channel?.unref();
    if ('failed' in reply) waiting?.reject(fromSent(reply.failed));
    else waiting?.resolve(reply);
  });
  const send = (request: HelperRequest): void => {
    // A request that cannot be sent has no helper any more, which `disconnect` reports.
    if (child.connected) child.send(request, () => undefined);
  };
  return {
    send,
    ask: (request) =>
      new Promise((resolve, reject) => {
        if (!child.connected) return reject(new HelperLostError());
        pending.set(request.id, { resolve, reject });
        child.channel?.ref();
        send(request);
      }),
    close: async () => {
      if (child.connected) child.disconnect();
      child.ref();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

function startHelper(): ChildProcess {
  // The helper's file lies beside this one, as source or compiled.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const child = fork(fileURLToPath(new URL(`./helper.${extension}`, import.meta.url)), {
    cwd: '/',
    env: {},
    execArgv: ['--disable-warning=ExperimentalWarning', ...heapOptions],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  child.unref();
  child.channel?.unref();
  return child;
}

function endOf(reply: HelperReply): EndedCommand {
  if ('ended' in reply) return reply.ended;
  throw new Error(`expected the end of command ${reply.id} from the helper, got ${JSON.stringify(reply)}`);
}
