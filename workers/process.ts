import type { Client } from '@temporalio/client';
import { type NativeConnection, Runtime, type TelemetryOptions, Worker, type WorkerOptions } from '@temporalio/worker';
import { type Logger, pino } from 'pino';
import type { Config, WorkerKind } from '../infra/config.ts';
import { connectWorker } from '../infra/temporal/connection.ts';
import { temporalTarget } from '../infra/temporal/temporal-target.ts';
import { reportStateOnSignal } from './report-state.ts';

/** The connection and the log that all workers of one process share. */
export interface WorkerProcess {
  readonly connection: NativeConnection;
  readonly client: Client;
  readonly namespace: string;
  readonly log: Logger;
}

/** Interval of heartbeats, which is short because a cancellation reaches an activity with its next heartbeat. */
const heartbeatInterval = '3s';
/**
 * Time that an activity gets to end at a shutdown. Activities are idempotent, and the next activity attempt continues.
 */
const forceTime = '10s';

/** Creates the log of a process: JSON lines on stdout. */
export function createLog(config: Config, part: string): Logger {
  const serializers = { error: pino.stdSerializers.err };
  return pino({ level: config.logLevel, base: { part, pid: process.pid }, serializers });
}

/** Connects, creates the workers, and runs them until the signal aborts or one of them fails; then drains all. */
export async function runWorkers(
  config: Config,
  part: WorkerKind,
  signal: AbortSignal,
  make: (process: WorkerProcess) => Promise<readonly WorkerOptions[]>,
): Promise<void> {
  const log = createLog(config, part);
  Runtime.install({ shutdownSignals: [], logger: temporalLogger(log), telemetryOptions: telemetryOf(config, part) });
  const { connection, client, close } = await connectWorker(temporalTarget(config));
  try {
    const { namespace } = client.options;
    const options = await make({ connection, client, namespace, log });
    const workers = await Promise.all(
      options.map((one) =>
        Worker.create({
          connection,
          namespace,
          maxHeartbeatThrottleInterval: heartbeatInterval,
          defaultHeartbeatThrottleInterval: heartbeatInterval,
          shutdownForceTime: forceTime,
          ...one,
        }),
      ),
    );
    const shutdown = (): void => {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    };
    signal.addEventListener('abort', shutdown, { once: true });
    reportStateOnSignal(log, signal);
    log.info({ queues: options.map(({ taskQueue }) => taskQueue) }, 'worker started');
    // If one worker fails, the whole process ends, and the supervisor starts a fresh one.
    const running = workers.map((worker) => worker.run().finally(shutdown));
    if (signal.aborted) shutdown();
    await Promise.all(running);
  } finally {
    await close();
    log.info('worker stopped');
  }
}

/** Serves metrics on the loopback address only, to a scraper on this machine. */
function telemetryOf({ metricsPorts }: Config, part: WorkerKind): TelemetryOptions {
  return metricsPorts === null ? {} : { metrics: { prometheus: { bindAddress: `127.0.0.1:${metricsPorts[part]}` } } };
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
