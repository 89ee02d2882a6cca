import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { stageWindows } from './windows.ts';

/** One request to the Docker daemon. */
interface Call {
  readonly atMs: number;
  readonly what: string;
}

export interface CallCounter {
  /** The address for `DOCKER_HOST`. */
  readonly address: string;
  readonly calls: readonly Call[];
  close(): Promise<void>;
}

const request = /^(GET|HEAD|POST|PUT|DELETE) (?:\/v[\d.]+)?(\/[^ ?]*)[^ ]* HTTP\/1\.1\r\n/;

/** Starts a socket before the daemon's that notes every request. A request begins a chunk, since clients wait for each answer. */
export async function startCallCounter(directory: string, daemon = '/var/run/docker.sock'): Promise<CallCounter> {
  const calls: Call[] = [];
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: daemon, allowHalfOpen: true });
    client.on('data', (chunk: Buffer) => {
      const [, method = '', path = ''] = request.exec(chunk.subarray(0, 2048).toString('latin1')) ?? [];
      if (method !== '') calls.push({ atMs: Date.now(), what: nameOf(method, path) });
    });
    client.pipe(engine).pipe(client);
    client.on('error', () => engine.destroy());
    engine.on('error', () => client.destroy());
    client.on('close', () => engine.destroy());
  });
  const path = join(directory, 'docker.sock');
  server.listen(path);
  await once(server, 'listening');
  return {
    address: `unix://${path}`,
    calls,
    close: async () => {
      server.close();
    },
  };
}

/** Names a request without the id of its container or exec, such as `POST containers/start`. */
function nameOf(method: string, path: string): string {
  const [kind = '', id = '', action] = path.split('/').filter(Boolean);
  const named = action ?? (id === 'create' || id === 'json' ? id : '');
  return `${method} ${[kind, named].filter(Boolean).join('/')}`;
}

export interface StageCalls {
  readonly stage: string;
  readonly calls: number;
  /** Commands that were started in containers. */
  readonly execs: number;
  readonly byCall: Readonly<Record<string, number>>;
}

/** Counts the calls that were made during each stage of a rollout that ran alone, by the times in its history. */
export async function callsByStage(client: Client, workflowId: string, calls: readonly Call[]): Promise<StageCalls[]> {
  const windows = await stageWindows(client, workflowId);
  const stages = windows.map(({ stage, startedMs, endedMs }) =>
    countCalls(
      stage,
      calls.filter((call) => call.atMs >= startedMs && call.atMs <= endedMs),
    ),
  );
  return stages.filter((stage) => stage.calls > 0);
}

function countCalls(stage: string, calls: readonly Call[]): StageCalls {
  const byCall: Record<string, number> = {};
  for (const { what } of calls) byCall[what] = (byCall[what] ?? 0) + 1;
  return { stage, calls: calls.length, execs: byCall['POST exec/start'] ?? 0, byCall };
}
