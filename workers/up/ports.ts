import { type Config, readConfig } from '../../infra/config.ts';
import { freePort, isPortFree } from '../../infra/temporal/ports.ts';
import type { PartName } from './part.ts';

/** A port that a part listens on. */
export interface Port {
  readonly port: number;
  readonly purpose: string;
  readonly setting: 'TEMPER_TEMPORAL_PORT' | 'TEMPER_UI_PORT' | 'TEMPER_POLICY_PORT' | 'TEMPER_METRICS_PORT';
}

export class PortInUse extends Error {}

/** Throws a PortInUse that names the first port on which another process listens. */
export async function requireFreePorts(config: Config, parts: readonly PartName[]): Promise<void> {
  for (const { port, purpose, setting } of portsOf(config, parts)) {
    if (await isPortFree(port)) continue;
    throw new PortInUse(
      `port ${port} of 127.0.0.1, which ${purpose} needs, is in use by another process; ` +
        `stop that process, set ${setting} to another port, or use --port auto to choose free ports`,
    );
  }
}

/**
 * Returns the config with free ports. Metrics keep their ports, where a scraper expects them, or are turned off if
 * those are in use.
 */
export async function withFreePorts(config: Config): Promise<Config> {
  const chosen: Record<string, string | undefined> = {};
  for (const { setting } of portsOf(config, ['temporal', 'policy'])) chosen[setting] = String(await freePort());
  const metrics = await Promise.all(metricsPortsOf(config).map(({ port }) => isPortFree(port)));
  if (!metrics.every(Boolean)) chosen.TEMPER_METRICS_PORT = undefined;
  return readConfig({ ...config.env, TEMPER_HOME: config.home, ...chosen });
}

/** Lists the ports that these parts listen on. */
export function portsOf(config: Config, parts: readonly PartName[]): Port[] {
  const temporal: Port[] = [
    { port: config.temporalPort, purpose: 'the Temporal server', setting: 'TEMPER_TEMPORAL_PORT' },
    { port: config.uiPort, purpose: 'the Temporal UI', setting: 'TEMPER_UI_PORT' },
  ];
  const policy: Port[] = [{ port: config.policyPort, purpose: 'the policy server', setting: 'TEMPER_POLICY_PORT' }];
  return [
    ...(parts.includes('temporal') ? temporal : []),
    ...(parts.includes('policy') ? policy : []),
    ...(parts.includes('control') ? metricsPortsOf(config) : []),
  ];
}

const metricsPortsOf = ({ metricsPorts }: Config): readonly Port[] =>
  Object.entries(metricsPorts ?? {}).map(([part, port]) => ({
    port,
    purpose: `the metrics of the ${part} worker`,
    setting: 'TEMPER_METRICS_PORT',
  }));
