import type { ServiceSettings } from '../sandbox/service.ts';
import type { Reject } from './values.ts';

interface Ordering {
  /** The main container, which runs before all services. */
  readonly main: string;
  readonly rejectAt: (service: string) => Reject;
}

/** Returns services so that each comes after those that it depends on. Throws what `rejectAt` makes for a circle or a missing one. */
export function orderOf<Service extends ServiceSettings>(
  services: readonly Service[],
  { main, rejectAt }: Ordering,
): readonly Service[] {
  const byName = new Map(services.map((service) => [service.name, service]));
  const ordered = new Map<string, Service>();
  const add = (service: Service, above: readonly string[]): void => {
    if (ordered.has(service.name)) return;
    const path = [...above, service.name];
    for (const { service: name } of service.dependsOn) {
      if (name === main) continue;
      const needed = byName.get(name);
      if (needed === undefined) throw rejectAt(service.name)('depends_on', 'services of the file', name);
      if (path.includes(name)) throw rejectAt(service.name)('depends_on', 'no circle', [...path, name].join(' → '));
      add(needed, path);
    }
    const dependsOn = service.dependsOn.filter(({ service: name }) => name !== main);
    ordered.set(service.name, { ...service, dependsOn });
  };
  for (const service of services) add(service, []);
  return [...ordered.values()];
}
