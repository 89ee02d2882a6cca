import type { ServiceDependency, ServiceSettings } from '../sandbox/service.ts';
import { environmentOf } from './environment.ts';
import { healthCheckOf } from './health-check.ts';
import { limitsOf } from './limits.ts';
import { defaultDockerfile } from './main-container.ts';
import { memoryOf, sizedDirectories } from './memory.ts';
import { type Mount, readMounts } from './mounts.ts';
import type { Service } from './schema.ts';
import { ulimitsOf } from './ulimits.ts';
import { insideOf, isHostName, type Reading, requireOnly, splitWords } from './values.ts';

/** A directory of the task's folder that an image is built from. */
export interface ComposedBuild {
  /** The path in the task's folder; empty for the folder itself. */
  readonly context: string;
  /** The path in the context. */
  readonly dockerfile: string;
}

/** A further service of a compose file. */
export interface ComposedService extends ServiceSettings {
  /** The image of the main container, one by name, or one to build. */
  readonly image: 'main' | { readonly name: string } | ComposedBuild;
  /** Files and directories of the task's own folder that it has a copy of. */
  readonly mounts: readonly Mount[];
}

/** The rules by which a service is read, with its name. */
export interface ServiceReading extends Reading {
  readonly name: string;
  /** The name of the main container's image, which its variable stands for. */
  readonly mainImage: string;
}

/** The limits of a service that names none. */
const defaults = { cpus: 1, memoryMb: 1024, sharedMemoryMb: 64 } as const;

export function readService(given: Service, reading: ServiceReading): ComposedService {
  const { name, fill, reject } = reading;
  if (!isHostName(name)) throw reject('name', 'the name of a host', name);
  const { mounts, volumes, tmpfs } = readMounts(given.volumes, reading);
  const limits = { ...defaults, ...limitsOf(given, fill, reject) };
  const memory = memoryOf(given, tmpfs, reading);
  const sharedMemoryMb = memory.sharedMemoryMb ?? defaults.sharedMemoryMb;
  if (sharedMemoryMb > limits.memoryMb) {
    throw reject('shm_size', `at most its memory of ${limits.memoryMb} MB`, String(given.shm_size));
  }
  const words = (command: Service['command'], field: string) => commandOf(command, (text) => fill(text, field));
  return {
    name,
    aliases: aliasesOf(given, reading),
    image: imageOf(given, reading),
    entrypoint: words(given.entrypoint, 'entrypoint'),
    command: words(given.command, 'command'),
    workdir: given.working_dir === undefined ? null : fill(given.working_dir, 'working_dir'),
    user: given.user === undefined ? null : fill(String(given.user), 'user'),
    env: environmentOf(given, reading),
    healthCheck: healthCheckOf(given, reading),
    dependsOn: dependenciesOf(given.depends_on),
    mounts,
    volumes,
    tmpfs: sizedDirectories(memory.tmpfs, limits.memoryMb),
    restarts: given.restart !== undefined && given.restart !== 'no',
    tty: given.tty,
    stdin: given.stdin_open,
    init: given.init,
    dropped: given.cap_drop.map((one) => fill(one, 'cap_drop').toUpperCase().replace(/^CAP_/, '')),
    ulimits: ulimitsOf(given, reading),
    ...limits,
    sharedMemoryMb,
  };
}

/** Returns the words of a command; a text is split, and an empty one leaves that of the image. */
function commandOf(command: Service['command'], fill: (text: string) => string): readonly string[] | null {
  if (command == null) return null;
  return typeof command === 'string' ? splitWords(fill(command)) : command.map(fill);
}

function imageOf({ image, build }: Service, { fill, reject, mainImage }: ServiceReading): ComposedService['image'] {
  if (build === undefined) {
    if (image === undefined) throw reject('image', 'an image or a build', 'neither');
    const name = fill(image, 'image');
    return name === mainImage ? 'main' : { name };
  }
  const {
    context = '.',
    dockerfile = defaultDockerfile,
    ...others
  } = typeof build === 'string' ? { context: build } : build;
  requireOnly(others, 'build', ['context', 'dockerfile'], reject);
  return {
    context: insideOf(fill(context, 'build.context'), 'build.context', reject),
    dockerfile: insideOf(fill(dockerfile, 'build.dockerfile'), 'build.dockerfile', reject),
  };
}

/** The further names of a service: those of its container and host, and the aliases of its networks. */
export function aliasesOf(given: Service, { fill, reject }: Reading): readonly string[] {
  const networks = Array.isArray(given.networks) ? [] : Object.entries(given.networks);
  for (const [network, settings] of networks) {
    requireOnly(settings, `networks.${network}`, ['aliases', 'priority'], reject);
  }
  const written = [
    ['container_name', given.container_name ?? []],
    ['hostname', given.hostname ?? []],
    ['networks', networks.flatMap(([, settings]) => settings?.aliases ?? [])],
  ] as const;
  return written.flatMap(([field, names]) =>
    [names].flat().map((name) => {
      const filled = fill(name, field);
      if (!isHostName(filled)) throw reject(field, 'the name of a host', filled);
      return filled;
    }),
  );
}

/** The names by which a service calls others: `links`, as pairs of service and name. */
export function linksOf({ links }: Service, { fill }: Pick<Reading, 'fill'>): readonly (readonly [string, string])[] {
  return links.map((link) => {
    const [service = '', name = service] = fill(link, 'links').split(':');
    return [service, name];
  });
}

const untils = {
  service_started: 'started',
  service_healthy: 'healthy',
  service_completed_successfully: 'completed',
} as const;

function dependenciesOf(given: Service['depends_on']): readonly ServiceDependency[] {
  if (Array.isArray(given)) return given.map((service) => ({ service, until: 'started' }));
  return Object.entries(given).map(([service, { condition }]) => ({ service, until: untils[condition] }));
}
