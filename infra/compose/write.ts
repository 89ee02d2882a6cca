import type { Beside, ServiceDependency, ServiceHealthCheck, ServiceVolume } from '../sandbox/service.ts';
import type { ComposedBuild } from './build.ts';
import { isOfHost, textIn } from './given-files.ts';
import { hiddenLiteral, hostValueIn, writeHostValue } from './host-value.ts';
import type { ComposedService } from './services.ts';

/** The variable of Harbor's that stands for the image of the main service. */
const mainVariable = '$' + '{MAIN_IMAGE_NAME}';

/**
 * Writes further services as a compose file whose main service is called `main`, in JSON, which is YAML. The image of `main` is
 * built without a network if `buildsOffline`.
 */
export function writeCompose(
  { services, names, volumes }: Beside<ComposedService>,
  { buildsOffline = false }: { readonly buildsOffline?: boolean } = {},
): string {
  const main = {
    ...(buildsOffline && { build: { context: '.', network: 'none' } }),
    networks: { default: { aliases: names } },
    ...(volumes.length > 0 && { volumes: volumes.map(volumeText) }),
  };
  const others = services.map(
    (service) =>
      [
        service.name,
        {
          ...tableWithDollars(fieldsOf(service)),
          environment: environmentOf(service),
          ...(service.image === 'main' && { image: mainVariable }),
        },
      ] as const,
  );
  const named = services.flatMap((service) => service.volumes).flatMap(({ name }) => (name === null ? [] : [name]));
  const texts = services.flatMap(textsOf);
  const file = {
    services: { main: withDollars(main), ...Object.fromEntries(others) },
    ...(named.length > 0 && { volumes: Object.fromEntries(named.map((name) => [name, {}])) }),
    ...(texts.length > 0 && { configs: Object.fromEntries(texts.map(({ source, given }) => [source, given])) }),
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}

function fieldsOf(service: ComposedService) {
  const { image, aliases, entrypoint, command, workdir, user, healthCheck, dependsOn, restarts, tty, stdin } = service;
  const { init, dropped, ulimits } = service;
  const mounts = service.mounts.map(({ source, target, readOnly }) => `./${source}:${target}${readOnly ? ':ro' : ''}`);
  return {
    ...(image !== 'main' && ('name' in image ? { image: image.name } : { build: buildOf(image) })),
    ...(entrypoint !== null && { entrypoint }),
    ...(command !== null && { command }),
    ...(workdir !== null && { working_dir: workdir }),
    ...(user !== null && { user }),
    ...(healthCheck !== null && { healthcheck: healthCheckOf(healthCheck) }),
    depends_on: Object.fromEntries(dependsOn.map(dependencyOf)),
    tmpfs: service.tmpfs.map(({ path, sizeMb }) => `${path}:size=${sizeMb}m`),
    ...(service.texts.length > 0 && { configs: textsOf(service).map(({ source, target }) => ({ source, target })) }),
    volumes: [...mounts, ...service.volumes.map(volumeText)],
    networks: { default: { aliases } },
    ...(restarts && { restart: 'on-failure' }),
    ...(init && { init }),
    ...(dropped.length > 0 && { cap_drop: dropped }),
    ...(ulimits.length > 0 && {
      ulimits: Object.fromEntries(ulimits.map(({ name, soft, hard }) => [name, { soft, hard }])),
    }),
    tty,
    stdin_open: stdin,
    cpus: service.cpus,
    mem_limit: `${service.memoryMb}m`,
    shm_size: `${service.sharedMemoryMb}m`,
  };
}

/** The variables of a service, in which those of the host stay what they are. */
const environmentOf = ({ env }: ComposedService) =>
  Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const ofHost = hostValueIn(value);
      const text = ofHost === null ? value : hiddenLiteral(value);
      if (text !== null || ofHost === null) return [name, withDollars(text)];
      const { fallback } = ofHost;
      return [name, writeHostValue({ ...ofHost, fallback: fallback?.replaceAll('$', '$$$$') })];
    }),
  );

/** The files of a service whose texts are in the compose file, or of the host. */
const textsOf = ({ name, texts }: ComposedService) =>
  texts.map((file, index) => {
    const given = isOfHost(file)
      ? { environment: hostValueIn(file.value)?.name }
      : { content: withDollars(textIn(file)) };
    return { source: `${name}-${index}`, target: file.target, given };
  });

const buildOf = ({ context, dockerfile, args, target, inline, offline }: ComposedBuild) => ({
  context: `./${context}`,
  ...(inline === null ? { dockerfile } : { dockerfile_inline: inline }),
  ...(offline && { network: 'none' }),
  ...(Object.keys(args).length > 0 && { args }),
  ...(target !== null && { target }),
});

const volumeText = ({ name, target, readOnly }: ServiceVolume): string =>
  name === null ? target : `${name}:${target}${readOnly ? ':ro' : ''}`;

const healthCheckOf = ({ test, intervalMs, timeoutMs, startPeriodMs, retries }: ServiceHealthCheck) => ({
  ...(test !== undefined && { test }),
  ...(intervalMs !== undefined && { interval: `${intervalMs}ms` }),
  ...(timeoutMs !== undefined && { timeout: `${timeoutMs}ms` }),
  ...(startPeriodMs !== undefined && { start_period: `${startPeriodMs}ms` }),
  ...(retries !== undefined && { retries }),
});

const conditions = {
  started: 'service_started',
  healthy: 'service_healthy',
  completed: 'service_completed_successfully',
} as const;

const dependencyOf = ({ service, until }: ServiceDependency) => [service, { condition: conditions[until] }] as const;

/** Doubles each dollar sign in all texts, because variables are already replaced by their values there. */
function withDollars(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('$', '$$$$');
  if (Array.isArray(value)) return value.map(withDollars);
  if (typeof value !== 'object' || value === null) return value;
  return tableWithDollars(value);
}

const tableWithDollars = (table: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(table).map(([key, one]) => [key, withDollars(one)]));
