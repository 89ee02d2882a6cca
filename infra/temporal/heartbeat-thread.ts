import { Worker } from 'node:worker_threads';
import { defaultPayloadConverter } from '@temporalio/common';
import proto from '@temporalio/proto';
import type { TemporalTarget } from './connection.ts';

/** The interval at which the event loop shows that it runs. */
const tickMs = 200;

/** An activity attempt whose process must show that it is alive. */
export interface RunningAttempt {
  readonly taskToken: Uint8Array;
  readonly heartbeatTimeoutMs: number;
  /** The details that the server has. */
  readonly details: unknown;
}

/** An activity attempt that the thread knows. */
export interface WatchedAttempt {
  /** Hands over the details of all later heartbeats: one without details would erase them. */
  report(details: unknown): void;
  end(): void;
}

/**
 * Sends the heartbeats of activity attempts while the event loop is too busy to. It sends none otherwise, and none once
 * the process is stopped or killed.
 */
export interface HeartbeatThread {
  watch(attempt: RunningAttempt): WatchedAttempt;
  /** Rejects if the thread dies. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

export type HeartbeatMessage =
  | {
      readonly type: 'watch';
      readonly id: number;
      /** The encoded request of a heartbeat. */
      readonly request: Uint8Array;
      readonly heartbeatTimeoutMs: number;
    }
  | { readonly type: 'report'; readonly id: number; readonly request: Uint8Array }
  | { readonly type: 'end'; readonly id: number };

export interface HeartbeatThreadData {
  readonly target: TemporalTarget;
  /** A counter that the event loop increases while it runs and while any activity attempt is watched. */
  readonly ticks: Int32Array;
}

/** Makes a thread for the activity attempts of a server. It starts with the first of them, because it takes some memory. */
export function createHeartbeatThread(target: TemporalTarget): HeartbeatThread {
  const ticks = new Int32Array(new SharedArrayBuffer(4));
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined); // the caller may not listen yet
  const watched = new Set<number>();
  let ticking: NodeJS.Timeout | undefined;
  let thread: Worker | undefined;
  let lastId = 0;

  const send = (message: HeartbeatMessage): void => {
    thread ??= startThread({ target, ticks }, failed.reject);
    thread.postMessage(message);
  };
  return {
    failed: failed.promise,
    watch({ taskToken, heartbeatTimeoutMs, details }) {
      lastId += 1;
      const id = lastId;
      const request = (latest: unknown) => encodeRequest(target.namespace, taskToken, latest);
      watched.add(id);
      ticking ??= setInterval(() => Atomics.add(ticks, 0, 1), tickMs).unref();
      send({ type: 'watch', id, request: request(details), heartbeatTimeoutMs });
      return {
        report: (latest) => send({ type: 'report', id, request: request(latest) }),
        end() {
          watched.delete(id);
          send({ type: 'end', id });
          if (watched.size > 0) return;
          clearInterval(ticking);
          ticking = undefined;
        },
      };
    },
    async close() {
      clearInterval(ticking);
      await thread?.terminate();
    },
  };
}

/** Encodes the request here, so that the thread does without the SDK, which would take tens of MB in each process. */
function encodeRequest(namespace: string, taskToken: Uint8Array, details: unknown): Uint8Array {
  const payload = details === undefined ? undefined : defaultPayloadConverter.toPayload(details);
  const request = proto.temporal.api.workflowservice.v1.RecordActivityTaskHeartbeatRequest.encode({
    namespace,
    taskToken,
    identity: `heartbeats of process ${process.pid}`,
    ...(payload !== undefined && { details: { payloads: [payload] } }),
  }).finish();
  // A copy, because the encoder's buffer is a view of a larger one, which would be sent as a whole.
  return Uint8Array.from(request);
}

function startThread(workerData: HeartbeatThreadData, onError: (error: unknown) => void): Worker {
  // The thread's file lies beside this one, as source or compiled.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const file = new URL(`./heartbeat-thread-main.${extension}`, import.meta.url);
  const thread = new Worker(file, { name: 'heartbeats', workerData });
  thread.on('error', onError);
  thread.unref();
  return thread;
}
