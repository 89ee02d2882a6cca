import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';

const pollMs = 50;
const callTimeoutMs = 5_000;

/** Resolves once the server answers for the namespace, which is a while after a dev server opens its port. */
export async function untilHealthy(
  server: { readonly host: string; readonly port: number; readonly namespace: string },
  signal: AbortSignal,
): Promise<void> {
  // A gRPC channel backs off for a second after a refused connection, so wait for the port before opening one.
  while (!(await accepts(server.host, server.port))) await sleep(pollMs, undefined, { signal });
  const connection = Connection.lazy({ address: `${server.host}:${server.port}` });
  try {
    while (!(await answers(connection, server.namespace, signal))) await sleep(pollMs, undefined, { signal });
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
      connection.withDeadline(Date.now() + callTimeoutMs, () =>
        connection.workflowService.describeNamespace({ namespace }),
      ),
    );
    return true;
  } catch {
    return false; // not up yet: the caller's signal bounds the wait
  }
}
