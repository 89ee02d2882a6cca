import type { Config } from '../../../infra/settings/config.ts';
import { type Metrics, readMetrics, transitionsOf, writesOf } from './metrics.ts';
import type { ProcessSampler, ProcessUse } from './processes.ts';

/** The state of a stack at one moment. */
export interface Snapshot {
  readonly atMs: number;
  readonly processes: readonly ProcessUse[];
  readonly control: Metrics;
  readonly host: Metrics;
  /** The writes of the Temporal server to its database since its start. */
  readonly writes: number;
  /** The state transitions of workflows that the server has made since its start. */
  readonly transitions: number;
}

interface SnapshotSources {
  readonly config: Pick<Config, 'metricsPorts'>;
  readonly sampler: ProcessSampler;
  /** The port at which the Temporal server serves its metrics. */
  readonly serverPort: number;
}

/** Makes a function that reads the state of a stack. */
export function createSnapshots({ config, sampler, serverPort }: SnapshotSources): () => Promise<Snapshot> {
  const { metricsPorts: ports } = config;
  if (ports === null) throw new Error('expected a stack with metrics');
  return async () => {
    const server = await readMetrics(serverPort);
    return {
      atMs: Date.now(),
      processes: sampler.read(),
      control: await readMetrics(ports.control),
      host: await readMetrics(ports.host),
      writes: writesOf(server),
      transitions: transitionsOf(server),
    };
  };
}

export const secondsBetween = (from: Snapshot, to: Snapshot): number => (to.atMs - from.atMs) / 1000;
export const writesPerSecond = (from: Snapshot, to: Snapshot): number =>
  (to.writes - from.writes) / secondsBetween(from, to);
export const transitionsPerSecond = (from: Snapshot, to: Snapshot): number =>
  (to.transitions - from.transitions) / secondsBetween(from, to);

/** Returns the CPU time of a process between two snapshots, in ms. */
export function cpuBetween(name: string, from: Snapshot, to: Snapshot): number {
  const cpuIn = ({ processes }: Snapshot): number => processes.find((use) => use.name === name)?.cpuMs ?? 0;
  return cpuIn(to) - cpuIn(from);
}
