import { z } from 'zod';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { readYaml } from '../../rows/yaml.ts';

/** What a compose file says of its one container, as far as a sandbox gives it. */
export interface ComposedContainer {
  /** An image by its name; null: it is built from this Dockerfile. */
  readonly image: string | null;
  readonly dockerfile: string;
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
}

const scalar = z.union([z.string(), z.number(), z.boolean()]).nullable();
const words = z.union([z.string(), z.array(z.string())], { error: 'expected a command' });
const build = z.union(
  [z.string(), z.looseObject({ context: z.string().optional(), dockerfile: z.string().optional() })],
  {
    error: 'expected a directory, or a table with context and dockerfile',
  },
);
const service = z.looseObject(
  {
    image: z.string({ error: 'expected the name of an image' }).optional(),
    build: build.optional(),
    command: words.nullish(),
    working_dir: z.string({ error: 'expected a path' }).optional(),
    environment: z
      .union([z.array(z.string()), z.record(z.string(), scalar)], { error: 'expected variables' })
      .default({}),
    volumes: z.array(z.unknown(), { error: 'expected a list' }).default([]),
  },
  { error: 'expected a service' },
);
const composeFile = z.looseObject({ services: z.record(z.string(), service, { error: 'expected services' }) });
type Service = z.output<typeof service>;

/** Of the file: what else there is asks for networks, volumes or secrets that no sandbox has. */
const knownOfFile = ['version', 'name', 'services'];
/** Of a service: read, or without a meaning for one container that has no network and is never restarted. */
const knownOfService = [
  ...['image', 'build', 'command', 'working_dir', 'environment', 'volumes'],
  ...['container_name', 'tty', 'stdin_open', 'init', 'platform', 'pull_policy', 'restart', 'labels', 'logging'],
  ...['ports', 'expose', 'stop_signal', 'stop_grace_period'],
];
export const defaultDockerfile = 'Dockerfile';

/** A container that waits for whoever runs commands in it, as a sandbox does. */
const waits =
  /^(?:(?:\/bin\/)?(?:ba)?sh -l?c )?(?:exec )?(?:sleep (?:infinity|inf|\d+[smhd]?)|tail -f \/dev\/null)$|^(?:\/bin\/)?(?:ba)?sh$/;

/**
 * Reads a compose file of one container. Throws TemperFailure MalformedTask for what is none, UnsupportedTask naming what a
 * sandbox does not give. `variables`: what its harness puts in the place of `$NAME`.
 */
export function readCompose(
  source: string,
  file: string,
  variables: Readonly<Record<string, string>>,
): ComposedContainer {
  const compose = readYaml(composeFile, source, file);
  const refuse = (field: string, expected: string, got: string): TemperFailure =>
    new TemperFailure('UnsupportedTask', `${file}: ${field}: expected ${expected}, got ${got.slice(0, 120)}`);
  const services = Object.entries(compose.services);
  const [only] = services;
  if (only === undefined || services.length > 1) {
    throw refuse('services', 'one service', services.map(([name]) => name).join(', ') || 'none');
  }
  const [name, described] = only;
  const at = `services.${name}`;
  requireKnown(compose, knownOfFile, (key) => refuse(key, `nothing beside ${knownOfFile.join(', ')}`, 'some'));
  requireKnown(described, knownOfService, (key) =>
    refuse(
      `${at}.${key}`,
      'a container that asks for nothing beyond a sandbox',
      JSON.stringify(described[key]) ?? 'some',
    ),
  );
  const command = [described.command ?? []].flat().join(' ');
  if (command !== '' && !waits.test(command)) throw refuse(`${at}.command`, 'one that only waits', command);
  const mount = described.volumes.find((volume) => typeof volume !== 'string' || !isLogMount(volume));
  if (mount !== undefined) throw refuse(`${at}.volumes`, 'none but for logs of the harness', JSON.stringify(mount));
  const fill = (text: string, field: string): string =>
    substitute(text, variables, (variable) => refuse(`${at}.${field}`, 'variables of the harness', `$${variable}`));
  return {
    ...imageOf(described, fill, (field, expected, got) => refuse(`${at}.${field}`, expected, got)),
    workdir: described.working_dir === undefined ? null : fill(described.working_dir, 'working_dir'),
    env: Object.fromEntries(
      pairsOf(described.environment).map(([key, value]) => {
        if (value === null) throw refuse(`${at}.environment.${key}`, 'a value', "the host's own");
        return [key, fill(value, `environment.${key}`)];
      }),
    ),
  };
}

function requireKnown(
  table: Readonly<Record<string, unknown>>,
  known: readonly string[],
  refusal: (key: string) => TemperFailure,
): void {
  const other = Object.keys(table).find((key) => !known.includes(key) && !key.startsWith('x-'));
  if (other !== undefined) throw refusal(other);
}

/** Where a container is built, its image's name only says what the result is called. */
function imageOf(
  { image, build: built }: Service,
  fill: (text: string, field: string) => string,
  refuse: (field: string, expected: string, got: string) => TemperFailure,
): Pick<ComposedContainer, 'image' | 'dockerfile'> {
  if (built === undefined) {
    return { image: image === undefined || image.includes('$') ? null : image, dockerfile: defaultDockerfile };
  }
  const {
    context = '.',
    dockerfile = defaultDockerfile,
    ...others
  } = typeof built === 'string' ? { context: built } : built;
  requireKnown(others, [], (key) => refuse(`build.${key}`, 'context and dockerfile alone', 'some'));
  if (!/^\.?\/?$/.test(fill(context, 'build.context'))) throw refuse('build.context', "the task's directory", context);
  return { image: null, dockerfile: fill(dockerfile, 'build.dockerfile').replace(/^\.\//, '') };
}

/** Nobody here reads the logs that its own harness collects. */
const isLogMount = (volume: string): boolean => /^\$\{?T_BENCH_TASK_(?:AGENT_)?LOGS_PATH\b/.test(volume);

function pairsOf(environment: Service['environment']): readonly (readonly [string, string | null])[] {
  if (!Array.isArray(environment)) {
    return Object.entries(environment).map(([key, value]) => [key, value === null ? null : String(value)]);
  }
  return environment.map((line) => {
    const at = line.indexOf('=');
    return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
  });
}

/** `$NAME`, `${NAME}`, `${NAME:-otherwise}`; `$$` is a dollar. */
const substitute = (
  text: string,
  variables: Readonly<Record<string, string>>,
  refusal: (variable: string) => TemperFailure,
): string =>
  text.replaceAll(
    /\$(?:(\$)|(\w+)|\{(\w+)(?::?-([^}]*))?\})/g,
    (_, dollar?: string, plain?: string, braced?: string, otherwise?: string) => {
      if (dollar !== undefined) return dollar;
      const variable = plain ?? braced ?? '';
      const value = variables[variable] ?? otherwise;
      if (value === undefined) throw refusal(variable);
      return value;
    },
  );
