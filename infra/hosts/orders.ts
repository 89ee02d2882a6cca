import type { HostRecord, Hosts } from '../store/hosts.ts';

const now = (): string => new Date().toISOString();

/**
 * Makes a host take no new work; the host learns of it with its next renewal. A lost one stays as it is. Returns null
 * if there is no such host.
 */
export function drainHost(hosts: Hosts, host: string, reason: string): Promise<HostRecord | null> {
  return hosts.update(host, (record) => {
    if (record === null || record.lost !== null || record.draining !== null) return record;
    return { ...record, draining: { since: now(), reason } };
  });
}

/** Makes a drained host take work again. A lost one stays as it is. Returns null if there is no such host. */
export function resumeHost(hosts: Hosts, host: string): Promise<HostRecord | null> {
  return hosts.update(host, (record) =>
    record?.draining && record.lost === null ? { ...record, draining: null } : record,
  );
}

/** The generation of a host that is to be declared lost, and why. */
export interface Loss {
  readonly generation: number;
  readonly reason: string;
  /** The last renewal that was seen: a host that has renewed its record since stays as it is. Default: any. */
  readonly renewedAt?: string;
}

/** Declares a generation of a host lost, for ever. A later one stays as it is. Returns null if there is no such host. */
export function declareLost(
  hosts: Pick<Hosts, 'update'>,
  host: string,
  { generation, reason, renewedAt }: Loss,
): Promise<HostRecord | null> {
  return hosts.update(host, (record) => {
    if (record === null || record.lost !== null || record.generation !== generation) return record;
    if (renewedAt !== undefined && record.renewedAt !== renewedAt) return record;
    return { ...record, lost: { since: now(), reason } };
  });
}
