import type { TelemetryOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Config, WorkerKind } from '../infra/settings/config.ts';
import { isLoopback } from '../infra/settings/listen.ts';
import { serveGuardedMetrics } from '../infra/temporal/guarded-metrics.ts';
import { freePort } from '../infra/temporal/ports.ts';
import { histograms } from '../workflows/contracts/metrics.ts';
import { watchListenTls } from './watch-listen-tls.ts';

/** The metrics of a worker process. */
export interface ProcessMetrics {
  /** Options of Temporal's SDK, which collects and exports them. */
  readonly telemetry: TelemetryOptions;
  close(): Promise<void>;
}

/**
 * Serves the metrics of a process at its port. The SDK's exporter has neither TLS nor a token, so that it listens on the
 * loopback address alone. Throws if the metrics are to be served to a network without a certificate and a token.
 */
export async function openMetrics(config: Config, part: WorkerKind, log: Logger): Promise<ProcessMetrics> {
  const { metricsPorts, metricsListen: listen } = config;
  if (metricsPorts === null) return { telemetry: {}, close: async () => {} };
  const port = metricsPorts[part];
  if (isLoopback(listen)) return { telemetry: exporterAt(`${listen}:${port}`), close: async () => {} };
  const { listenTls, metricsToken: token } = config;
  if (listenTls === null || token === null) {
    const lacking = [
      ...(listenTls === null ? ['TEMPER_LISTEN_CERT', 'TEMPER_LISTEN_KEY'] : []),
      ...(token === null ? ['TEMPER_METRICS_TOKEN'] : []),
    ].join(', ');
    throw new Error(
      `TEMPER_METRICS_LISTEN=${listen} serves the metrics to a network, which also needs ${lacking}; set them, or listen on 127.0.0.1`,
    );
  }
  const exporter = `127.0.0.1:${await freePort()}`;
  const tls = await listenTls();
  const { serveTls, close } = await serveGuardedMetrics({ from: `http://${exporter}`, listen, port, tls, token });
  const closing = new AbortController();
  void watchListenTls({ read: listenTls, served: tls, serve: serveTls, log }, closing.signal);
  return {
    telemetry: exporterAt(exporter),
    close() {
      closing.abort();
      return close();
    },
  };
}

const exporterAt = (bindAddress: string): TelemetryOptions => ({
  metrics: { prometheus: { bindAddress, histogramBucketOverrides } },
});

const histogramBucketOverrides = Object.fromEntries(
  Object.entries(histograms).map(([name, { buckets }]) => [`temper_${name}`, [...buckets]]),
);
