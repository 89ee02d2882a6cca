import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';

const POLL_MS = 50;
const CALL_TIMEOUT_MS = 5_000;

/** Resolves once the server answers for the namespace; a dev server opens its port a while before. */
export async function untilHealthy(
  server: { readonly host: string; readonly port: number; readonly namespace: string },
  signal: AbortSignal,
): Promise<void> {
  // A gRPC channel backs off for a second after a refused connection: it is opened when there is something to talk to.
  while (!(await accepts(server.host, server.port))) await sleep(POLL_MS, undefined, { signal });
  const connection = Connection.lazy({ address: `${server.host}:${server.port}` });
  try {
    while (!(await answers(connection, server.namespace, signal))) await sleep(POLL_MS, undefined, { signal });
  } finally {
    await connection.close();
  }
  signal.throwIfAborted();
}

async function accepts(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

async function answers(connection: Connection, namespace: string, signal: AbortSignal): Promise<boolean> {
  try {
    await connection.withAbortSignal(signal, () =>
      connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        connection.workflowService.describeNamespace({ namespace }),
      ),
    );
    return true;
  } catch {
    return false; // not up yet: the caller's signal bounds the wait
  }
}
