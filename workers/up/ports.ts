import { type Config, readConfig } from '../../infra/settings/config.ts';
import { freePort, isPortFree } from '../../infra/temporal/ports.ts';
import type { PartName } from './part.ts';

/** The address of the Temporal dev server and its UI. */
const loopback = '127.0.0.1';

/** A port that a part listens on. */
export interface Port {
  readonly host: string;
  readonly port: number;
  readonly purpose: string;
  readonly setting: 'TEMPER_TEMPORAL_PORT' | 'TEMPER_UI_PORT' | 'TEMPER_POLICY_PORT' | 'TEMPER_METRICS_PORT';
}

/** Throws an error that names the first port on which another process listens. */
export async function requireFreePorts(config: Config, parts: readonly PartName[]): Promise<void> {
  for (const one of portsOf(config, parts)) {
    if (await isFree(one)) continue;
    const { host, port, purpose, setting } = one;
    throw new Error(
      `port ${port} of ${host}, which ${purpose} needs, is in use by another process; ` +
        `stop that process, set ${setting} to another port, or use --port auto to choose free ports`,
    );
  }
}

/** Whether a port is free. Throws for an address that this machine does not have. */
export async function isFree({ host, port, setting }: Pick<Port, 'host' | 'port' | 'setting'>): Promise<boolean> {
  return await isPortFree(port, host).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== 'EADDRNOTAVAIL') throw cause;
    const chosen = setting === 'TEMPER_METRICS_PORT' ? 'TEMPER_METRICS_LISTEN' : 'TEMPER_LISTEN';
    throw new Error(`${chosen}=${host} is no address of this machine; name one that it has, or 0.0.0.0`, { cause });
  });
}

/**
 * Returns the config with free ports. Metrics keep their ports, where a scraper expects them, or are turned off if
 * those are in use.
 */
export async function withFreePorts(config: Config): Promise<Config> {
  const chosen: Record<string, string | undefined> = {};
  for (const { host, setting } of portsOf(config, ['temporal', 'policy'])) {
    chosen[setting] = String(await freePort(host));
  }
  const metrics = await Promise.all(metricsPortsOf(config, ['control', 'host', 'trainer']).map(isFree));
  if (!metrics.every(Boolean)) chosen.TEMPER_METRICS_PORT = undefined;
  return readConfig({ ...config.env, TEMPER_HOME: config.home, ...chosen });
}

/** Lists the ports that these parts listen on. */
export function portsOf(config: Config, parts: readonly PartName[]): Port[] {
  const temporal: Port[] = [
    { host: loopback, port: config.temporalPort, purpose: 'the Temporal server', setting: 'TEMPER_TEMPORAL_PORT' },
    { host: loopback, port: config.uiPort, purpose: 'the Temporal UI', setting: 'TEMPER_UI_PORT' },
  ];
  const policy: Port[] = [
    { host: config.listen, port: config.policyPort, purpose: 'the policy server', setting: 'TEMPER_POLICY_PORT' },
  ];
  return [
    ...(parts.includes('temporal') ? temporal : []),
    ...(parts.includes('policy') ? policy : []),
    ...metricsPortsOf(config, parts),
  ];
}

/** Lists the ports at which the workers among these parts serve their metrics. */
const metricsPortsOf = ({ metricsListen, metricsPorts }: Config, parts: readonly PartName[]): readonly Port[] =>
  Object.entries(metricsPorts ?? {})
    .filter(([worker]) => parts.some((part) => part === worker))
    .map(([worker, port]) => ({
      host: metricsListen,
      port,
      purpose: `the metrics of the ${worker} worker`,
      setting: 'TEMPER_METRICS_PORT',
    }));
