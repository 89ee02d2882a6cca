import { z } from 'zod';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { type ContainerLimits, limitFields, limitsOf, type Reject } from './limits.ts';
import { type Mount, readMount } from './mounts.ts';
import { readYaml } from './yaml.ts';

/** The container that a compose file describes, as far as a sandbox can provide it. */
export interface ComposedContainer {
  /** The name of the image, or null when it is built from `dockerfile`. */
  readonly image: string | null;
  readonly dockerfile: string;
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** The command that starts something, or null if it only waits. */
  readonly command: readonly string[] | null;
  /** The entry point that replaces the image's; undefined if that stays. */
  readonly entrypoint: readonly string[] | undefined;
  readonly limits: ContainerLimits;
  /** Files and directories of the task's own folder, in the order in which they are mounted. */
  readonly mounts: readonly Mount[];
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
    entrypoint: words.nullish(),
    working_dir: z.string({ error: 'expected a path' }).optional(),
    environment: z
      .union([z.array(z.string()), z.record(z.string(), scalar)], { error: 'expected variables' })
      .default({}),
    volumes: z.array(z.unknown(), { error: 'expected a list' }).default([]),
    ...limitFields,
  },
  { error: 'expected a service' },
);
const composeFile = z.looseObject({ services: z.record(z.string(), service, { error: 'expected services' }) });
type Service = z.output<typeof service>;

/** The accepted keys of the file. Others ask for networks, volumes or secrets, which sandboxes do not have. */
const fileKeys = ['version', 'name', 'services'];
/** The accepted keys of a service: those that are read, and those without effect on a container without network or restarts. */
const serviceKeys = [
  'image',
  'build',
  'command',
  'entrypoint',
  'working_dir',
  'environment',
  'volumes',
  'container_name',
  'tty',
  'stdin_open',
  'init',
  'platform',
  'pull_policy',
  'restart',
  'labels',
  'logging',
  'ports',
  'expose',
  'stop_signal',
  'stop_grace_period',
  ...Object.keys(limitFields),
];
export const defaultDockerfile = 'Dockerfile';

/** Matches a command that only keeps the container running, as a sandbox does. */
const waitingCommand =
  /^(?:(?:\/bin\/)?(?:ba)?sh -l?c )?(?:exec )?(?:sleep (?:infinity|inf|\d+[smhd]?)|tail -f \/dev\/null)$|^(?:\/bin\/)?(?:ba)?sh$/;

/**
 * Reads a compose file with one container. `variables` are the values that the harness substitutes for `$NAME`. Throws
 * TemperFailure MalformedTask for an invalid file, and UnsupportedTask when the file needs more than a sandbox provides.
 */
export function readCompose(
  source: string,
  file: string,
  variables: Readonly<Record<string, string>>,
): ComposedContainer {
  const compose = readYaml(composeFile, source, file);
  const reject = (field: string, expected: string, got: string): TemperFailure =>
    new TemperFailure('UnsupportedTask', `${file}: ${field}: expected ${expected}, got ${got.slice(0, 120)}`);
  const services = Object.entries(compose.services);
  const [only] = services;
  if (only === undefined || services.length > 1) {
    throw reject('services', 'one service', services.map(([name]) => name).join(', ') || 'none');
  }
  const [name, container] = only;
  const at = `services.${name}`;
  requireKnown(compose, fileKeys, (key) => reject(key, `only the keys ${fileKeys.join(', ')}`, key));
  requireKnown(container, serviceKeys, (key) =>
    reject(`${at}.${key}`, 'a key that a sandbox supports', JSON.stringify(container[key]) ?? 'some'),
  );
  const refuse: Reject = (field, expected, got) => reject(`${at}.${field}`, expected, got);
  const fill = (text: string, field: string): string =>
    substitute(text, variables, (variable) => refuse(field, 'only variables of the harness', `$${variable}`));
  return {
    ...imageOf(container, fill, refuse),
    workdir: container.working_dir === undefined ? null : fill(container.working_dir, 'working_dir'),
    env: Object.fromEntries(
      pairsOf(container.environment).map(([key, value]) => {
        if (value === null) throw refuse(`environment.${key}`, 'a value', 'a variable of the host');
        return [key, fill(value, `environment.${key}`)];
      }),
    ),
    command: commandOf(container.command, (text) => fill(text, 'command')),
    entrypoint:
      container.entrypoint == null ? undefined : wordsOf(container.entrypoint, (text) => fill(text, 'entrypoint')),
    limits: limitsOf(container, fill, refuse),
    mounts: container.volumes.flatMap((volume) => readMount(volume, fill, refuse) ?? []),
  };
}

type Fill = (text: string) => string;

/** Returns the words of a command; a text is left to the shell. */
const wordsOf = (command: string | readonly string[], fill: Fill): readonly string[] =>
  typeof command === 'string' ? ['/bin/sh', '-c', fill(command)] : command.map(fill);

function commandOf(command: Service['command'], fill: Fill): readonly string[] | null {
  const text = [command ?? []].flat().join(' ');
  return command == null || text === '' || waitingCommand.test(text) ? null : wordsOf(command, fill);
}

function requireKnown(
  table: Readonly<Record<string, unknown>>,
  known: readonly string[],
  rejection: (key: string) => Error,
): void {
  const other = Object.keys(table).find((key) => !known.includes(key) && !key.startsWith('x-'));
  if (other !== undefined) throw rejection(other);
}

/** The image or Dockerfile of a service. The image name of a service with a build only names the result. */
function imageOf(
  { image, build: built }: Service,
  fill: (text: string, field: string) => string,
  reject: Reject,
): Pick<ComposedContainer, 'image' | 'dockerfile'> {
  if (built === undefined) {
    return { image: image === undefined || image.includes('$') ? null : image, dockerfile: defaultDockerfile };
  }
  const {
    context = '.',
    dockerfile = defaultDockerfile,
    ...others
  } = typeof built === 'string' ? { context: built } : built;
  requireKnown(others, [], (key) => reject(`build.${key}`, 'only context and dockerfile', key));
  if (!/^\.?\/?$/.test(fill(context, 'build.context'))) throw reject('build.context', "the task's directory", context);
  return { image: null, dockerfile: fill(dockerfile, 'build.dockerfile').replace(/^\.\//, '') };
}

function pairsOf(environment: Service['environment']): readonly (readonly [string, string | null])[] {
  if (!Array.isArray(environment)) {
    return Object.entries(environment).map(([key, value]) => [key, value === null ? null : String(value)]);
  }
  return environment.map((line) => {
    const at = line.indexOf('=');
    return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
  });
}

/** Substitutes `$NAME`, `${NAME}` and `${NAME:-default}`. `$$` is a dollar sign. */
const substitute = (
  text: string,
  variables: Readonly<Record<string, string>>,
  rejection: (variable: string) => Error,
): string =>
  text.replaceAll(
    /\$(?:(\$)|(\w+)|\{(\w+)(?::?-([^}]*))?\})/g,
    // biome-ignore lint/complexity/useMaxParams: the signature of a replacer, one parameter for each group
    (_, dollar?: string, plain?: string, braced?: string, fallback?: string) => {
      if (dollar !== undefined) return dollar;
      const variable = plain ?? braced ?? '';
      const value = variables[variable] ?? fallback;
      if (value === undefined) throw rejection(variable);
      return value;
    },
  );
