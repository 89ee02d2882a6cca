import { z } from 'zod';
import { type Reject, requireOnly } from './values.ts';

/** Limits of a container that a sandbox applies; a missing one leaves the default of all tasks. */
export interface ContainerLimits {
  readonly cpus?: number;
  readonly memoryMb?: number;
}

const amount = z.union([z.string(), z.number()], { error: 'expected a number or a size' }).nullish();
const resources = z
  .looseObject({ cpus: amount, memory: amount, pids: amount }, { error: 'expected a table with cpus and memory' })
  .nullish();

/** The keys of a service that limit what it may use. */
export const limitFields = {
  cpus: amount,
  cpu_quota: amount,
  cpu_period: amount,
  cpu_count: amount,
  mem_limit: amount,
  mem_reservation: amount,
  memswap_limit: amount,
  shm_size: amount,
  deploy: z
    .looseObject({
      replicas: z.number({ error: 'expected a number' }).optional(),
      resources: z.looseObject({ limits: resources, reservations: resources }).nullish(),
    })
    .nullish(),
};
const limited = z.looseObject(limitFields);
type Limited = z.output<typeof limited>;

/** Keys of `deploy` that say how a cluster starts its containers, which has no effect on one container. */
const withoutEffect = ['mode', 'labels', 'restart_policy', 'update_config', 'rollback_config'];
const smallestMb = 16;

/**
 * Reads the limits of a service. Reserved amounts are those that the task must have, so they count where no limit is set. Swap
 * is left out: a sandbox has none, and so never more memory than the file allows.
 */
export function limitsOf(service: Limited, fill: (text: string, field: string) => string, reject: Reject) {
  const { deploy } = service;
  requireOnly(deploy, 'deploy', ['replicas', 'resources', ...withoutEffect], reject);
  requireOnly(deploy?.resources, 'deploy.resources', ['limits', 'reservations'], reject);
  if ((deploy?.replicas ?? 1) !== 1) throw reject('deploy.replicas', '1', String(deploy?.replicas));
  const { limits, reservations } = deploy?.resources ?? {};
  requireOnly(limits, 'deploy.resources.limits', ['cpus', 'memory', 'pids'], reject);
  requireOnly(reservations, 'deploy.resources.reservations', ['cpus', 'memory'], reject);
  const text = (value: string | number, field: string): string => fill(String(value), field).trim();
  const first = <Value>(read: (value: string, field: string) => Value, ...fields: readonly Field[]): Value | null => {
    const [found] = fields.flatMap(([field, value]) =>
      value === null || value === undefined ? [] : [{ field, value }],
    );
    return found === undefined ? null : read(text(found.value, found.field), found.field);
  };
  const cpus = first(
    (value, field) => cpusIn(value, field, reject),
    ['deploy.resources.limits.cpus', limits?.cpus],
    ['cpus', service.cpus],
    ['cpu_quota', shareOf(service, text, reject)],
    // Zero stands for no limit.
    ['cpu_count', Number(service.cpu_count) === 0 ? null : service.cpu_count],
    ['deploy.resources.reservations.cpus', reservations?.cpus],
  );
  const memoryMb = first(
    (value, field) => megabytesIn(value, field, { smallest: smallestMb, reject }),
    ['deploy.resources.limits.memory', limits?.memory],
    ['mem_limit', service.mem_limit],
    ['deploy.resources.reservations.memory', reservations?.memory],
    ['mem_reservation', service.mem_reservation],
  );
  return { ...(cpus !== null && { cpus }), ...(memoryMb !== null && { memoryMb }) } satisfies ContainerLimits;
}

/** Returns the size in MB of a service's `/dev/shm`, or null if it names none. */
export function sharedMemoryOf(
  { shm_size: size }: Limited,
  fill: (text: string, field: string) => string,
  reject: Reject,
): number | null {
  if (size === null || size === undefined) return null;
  return megabytesIn(fill(String(size), 'shm_size').trim(), 'shm_size', { smallest: 0, reject });
}

type Field = readonly [field: string, value: string | number | null | undefined];

/** The period of a CPU quota in microseconds, unless a service names another. */
const usualPeriod = 100_000;

/** Returns how many CPUs the quota of a service allows; null if it has no quota. */
function shareOf(
  { cpu_quota: quota, cpu_period: period }: Limited,
  text: (value: string | number, field: string) => string,
  reject: Reject,
): number | null {
  const microseconds = (value: string | number | null | undefined, field: string): number => {
    const written = value === null || value === undefined ? '0' : text(value, field);
    if (!/^(?:-1|\d{1,9})$/.test(written)) throw reject(field, 'a number of microseconds', written);
    return Number(written);
  };
  const [used, whole] = [microseconds(quota, 'cpu_quota'), microseconds(period, 'cpu_period')];
  return used > 0 ? used / (whole > 0 ? whole : usualPeriod) : null;
}

function cpusIn(value: string, field: string, reject: Reject): number {
  const cpus = Number(value);
  if (value === '' || !(cpus >= 0.01 && cpus <= 1024)) throw reject(field, 'a number of CPUs from 0.01 to 1024', value);
  return cpus;
}

const unitMb: Readonly<Record<string, number>> = {
  '': 1 / 2 ** 20,
  b: 1 / 2 ** 20,
  k: 1 / 1024,
  m: 1,
  g: 1024,
  t: 1024 ** 2,
};

/** Returns a size in MB, rounded up. */
export function megabytesIn(
  value: string,
  field: string,
  { smallest, reject }: { readonly smallest: number; readonly reject: Reject },
): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?$/i.exec(value) ?? [];
  const megabytes = Math.ceil(Number(amount) * (unitMb[unit.toLowerCase()] ?? 1));
  if (amount === '' || megabytes < smallest || megabytes > 10_000_000) {
    throw reject(field, `a size such as "512m" or "2g" of at least ${smallest} MB`, value);
  }
  return megabytes;
}
