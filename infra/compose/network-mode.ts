import type { Service } from './schema.ts';
import type { Reading } from './values.ts';

/** Modes that ask for no more than the network device that a sandbox shares with its services. */
const usual = ['', 'bridge', 'default', 'none'];

/** Returns the service whose network device a service asks for (`network_mode: service:NAME`); null for none in particular. */
export function sharedWith({ network_mode: written = '' }: Service, { fill, reject }: Reading): string | null {
  const mode = fill(written, 'network_mode');
  if (usual.includes(mode)) return null;
  const [, name] = /^service:(.+)$/.exec(mode) ?? [];
  if (name !== undefined) return name;
  throw reject('network_mode', 'none, bridge, or service: with the name of a service', JSON.stringify(mode));
}

/**
 * Returns the service to whose network device each service belongs in the file, by names. The file may leave out the main
 * service. Throws what `reject` makes for another one that is missing.
 */
export function devicesOf(
  services: readonly (readonly [name: string, service: Service])[],
  main: string,
  readingOf: (service: string) => Reading,
): ReadonlyMap<string, string> {
  const shared = new Map(services.map(([name, service]) => [name, sharedWith(service, readingOf(name))]));
  return new Map(
    services.map(([name]) => {
      const passed = new Set([name]);
      let owner = name;
      for (let next = shared.get(owner); next != null && !passed.has(next); next = shared.get(owner)) {
        if (!shared.has(next) && next !== main)
          throw readingOf(owner).reject('network_mode', 'a service of the file', `service:${next}`);
        passed.add(next);
        owner = next;
      }
      return [name, owner];
    }),
  );
}
