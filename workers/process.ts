import type { Client } from '@temporalio/client';
import { type NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Config, WorkerKind } from '../infra/settings/config.ts';
import { connectWorker } from '../infra/temporal/connection.ts';
import { createHeartbeatThread } from '../infra/temporal/heartbeat-thread.ts';
import { temporalTarget } from '../infra/temporal/temporal-target.ts';
import { workerIdentity } from '../infra/temporal/worker-identity.ts';
import { createLog } from './log.ts';
import { openMetrics } from './metrics.ts';
import { reportStateOnSignal } from './report-state.ts';
import { credentialsReplaced } from './watch-credentials.ts';
import { watchedBy } from './watched-worker.ts';
import { createWorkerGroup } from './worker-group.ts';

/** The connection and the log that all workers of one process share. */
export interface WorkerProcess {
  readonly connection: NativeConnection;
  readonly client: Client;
  readonly namespace: string;
  readonly log: Logger;
  /** Starts a worker beside those that `make` returns; returns the function that stops it alone. */
  startWorker(options: WorkerOptions): Promise<() => void>;
}

/** The interval at which the heartbeats of an activity attempt are sent at most. Only by their answers it learns of a cancel. */
const heartbeatInterval = '3s';
/** Options of every worker. */
const common = {
  identity: workerIdentity,
  maxHeartbeatThrottleInterval: heartbeatInterval,
  defaultHeartbeatThrottleInterval: heartbeatInterval,
  // Activities are idempotent, and the next activity attempt continues what does not end in time.
  shutdownForceTime: '10s',
} as const satisfies Partial<WorkerOptions>;

/** A process of a stack that runs workers. */
export interface WorkerPart {
  readonly config: Config;
  readonly part: WorkerKind;
  /** Writes what `temper status` says about the end of the client certificate; null withdraws it. */
  readonly noteExpiry?: (text: string | null) => Promise<void>;
}

/**
 * Connects, creates the workers, and runs them until the signal aborts, one of them fails, or the files with the credentials for
 * the server are replaced; then drains all.
 */
export async function runWorkers(
  { config, part, noteExpiry }: WorkerPart,
  signal: AbortSignal,
  make: (process: WorkerProcess) => Promise<readonly WorkerOptions[]>,
): Promise<void> {
  const log = createLog(config, part);
  const metrics = await openMetrics(config, part, log);
  Runtime.install({ shutdownSignals: [], logger: temporalLogger(log), telemetryOptions: metrics.telemetry });
  const target = temporalTarget(config);
  const { connection, client, close } = await connectWorker(target);
  const heartbeats = createHeartbeatThread(target);
  const { namespace } = client.options;
  const workers = createWorkerGroup((one) =>
    Worker.create({ connection, namespace, ...common, ...watchedBy(heartbeats, one) }),
  );
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  try {
    signal.addEventListener('abort', workers.shutdown, { once: true });
    const options = await make({ connection, client, namespace, log, startWorker: workers.start });
    await Promise.all(options.map(workers.start));
    reportStateOnSignal(log, signal);
    log.info({ queues: options.map(({ taskQueue }) => taskQueue) }, 'worker started');
    // If the thread fails, the whole process ends too.
    heartbeats.failed.catch(workers.shutdown);
    if (signal.aborted) workers.shutdown();
    let credentialsAreOld = false;
    void credentialsReplaced({ settings: config, used: target, log, noteExpiry }, ended).then((replaced) => {
      credentialsAreOld = replaced;
      if (replaced) workers.shutdown();
    });
    await Promise.race([workers.ended, heartbeats.failed.finally(() => workers.ended)]);
    if (credentialsAreOld) {
      throw new Error(
        'the credentials for the Temporal server were replaced: this process ends, and the next one uses them',
      );
    }
  } finally {
    ending.abort();
    workers.shutdown();
    await workers.ended.catch(() => {});
    await heartbeats.close();
    // A worker that failed may hold the connection for ever; the process ends all the same.
    await close().catch((error: unknown) =>
      log.warn({ error }, 'could not close the connection to the Temporal server'),
    );
    await metrics.close();
    log.info('worker stopped');
  }
}

function temporalLogger(log: Logger) {
  const write = (level: 'trace' | 'debug' | 'info' | 'warn' | 'error') => (message: string, meta?: object) =>
    log[level](meta ?? {}, message);
  const at = {
    trace: write('trace'),
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  };
  return {
    ...at,
    log: (level: string, message: string, meta?: object) => at[level.toLowerCase() as keyof typeof at](message, meta),
  };
}
