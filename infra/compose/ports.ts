import type { Service } from './schema.ts';
import type { Reject } from './values.ts';

interface Declaring {
  /** The service to whose network device each belongs in the file: those of one device may declare the same port. */
  readonly devices: ReadonlyMap<string, string>;
  readonly rejectAt: (service: string) => Reject;
}

/**
 * Rejects services that declare the same port, because all share one loopback device with the sandbox. Nothing is published to
 * the host.
 */
export function requireOwnPorts(
  services: readonly (readonly [name: string, service: Service])[],
  { devices, rejectAt }: Declaring,
): void {
  const owners = new Map<number, string>();
  for (const [name, service] of services) {
    for (const [field, port] of portsOf(service)) {
      const owner = owners.get(port) ?? name;
      if (devices.get(owner) !== devices.get(name)) {
        throw rejectAt(name)(
          field,
          'a port of its own, since all services share one network device',
          `${port} of ${owner}`,
        );
      }
      owners.set(port, name);
    }
  }
}

/** Returns the container's ports among `ports` and `expose`; a range or a variable is left out. */
function portsOf(service: Service): readonly (readonly [field: string, port: number])[] {
  return (['ports', 'expose'] as const).flatMap((field) =>
    [service[field] ?? []].flat().flatMap((entry) => {
      const written = typeof entry === 'object' && entry !== null && 'target' in entry ? entry.target : entry;
      const [port = ''] = String(written).split(':').at(-1)?.split('/') ?? [];
      return /^\d{1,5}$/.test(port) ? [[field, Number(port)] as const] : [];
    }),
  );
}
