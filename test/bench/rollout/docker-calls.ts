import type { Client } from '@temporalio/client';
import { type DaemonProxy, startDaemonProxy } from '../../helpers/sandbox/daemon-proxy.ts';
import { stageWindows } from './windows.ts';

/** One request to the Docker daemon. */
interface Call {
  readonly atMs: number;
  readonly what: string;
}

export interface CallCounter extends DaemonProxy {
  readonly calls: readonly Call[];
}

/** Starts a socket before the daemon's that notes every request. */
export async function startCallCounter(directory: string): Promise<CallCounter> {
  const calls: Call[] = [];
  const proxy = await startDaemonProxy(directory, ({ method, path }) => {
    calls.push({ atMs: Date.now(), what: nameOf(method, path) });
  });
  return { ...proxy, calls };
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
