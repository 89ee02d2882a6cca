import { isIP } from 'node:net';
import type { HostEntry } from '../../workflows/contracts/task.ts';
import type { Service } from './schema.ts';
import { isHostName, type Reading } from './values.ts';

/** Docker's word for the address of the host, which no sandbox reaches, so that a name for it stays unknown. */
const ofHost = 'host-gateway';

/** Reads the further names of hosts of one service (`extra_hosts`). */
function hostsOf({ extra_hosts: given }: Service, { fill, reject }: Reading): readonly HostEntry[] {
  const pairs = Array.isArray(given)
    ? given.map((entry) => /^([^=:]*)[=:](.*)$/s.exec(fill(entry, 'extra_hosts').trim())?.slice(1) ?? [entry, ''])
    : Object.entries(given).flatMap(([name, addresses]) =>
        [addresses].flat().map((address) => [name, fill(address, 'extra_hosts')]),
      );
  return pairs.flatMap(([name = '', written = '']) => {
    const address = written.trim().replace(/^\[(.*)\]$/, '$1');
    if (isHostName(name.trim()) && address === ofHost) return [];
    if (!isHostName(name.trim()) || isIP(address) === 0) {
      throw reject('extra_hosts', 'names with their addresses, such as "db.test:127.0.0.1"', `${name}:${written}`);
    }
    return [{ name: name.trim(), address }];
  });
}

/**
 * Returns the further names of hosts of all services, which share one file of names. Throws TemperFailure UnsupportedTask if a name
 * has different addresses in two services, or is that of a service.
 */
export function sharedHosts(
  services: readonly (readonly [name: string, service: Service])[],
  readingOf: (service: string) => Reading,
): readonly HostEntry[] {
  const owners = new Map<string, { readonly service: string; readonly addresses: readonly string[] }>();
  for (const [service, given] of services) {
    const { reject } = readingOf(service);
    const own = Map.groupBy(hostsOf(given, readingOf(service)), ({ name }) => name);
    for (const [name, entries] of own) {
      if (services.some(([one]) => one === name)) {
        throw reject('extra_hosts', 'no name of a service of the file', name);
      }
      const addresses = [...new Set(entries.map(({ address }) => address))];
      const owner = owners.get(name) ?? { service, addresses };
      if (addresses.toSorted().join() !== owner.addresses.toSorted().join()) {
        const expected = `the same addresses of ${name} everywhere, since all services share their names of hosts`;
        throw reject(
          'extra_hosts',
          expected,
          `${addresses.join(', ')}, and ${owner.addresses.join(', ')} of ${owner.service}`,
        );
      }
      owners.set(name, owner);
    }
  }
  return [...owners].flatMap(([name, { addresses }]) => addresses.map((address) => ({ name, address })));
}
