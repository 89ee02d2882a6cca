import { isDeepStrictEqual } from 'node:util';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { HostEntry } from '../../workflows/contracts/task.ts';
import { type Composed, mainImage, readCompose } from '../compose/compose.ts';
import { isOfHost, textIn } from '../compose/given-files.ts';
import { type MainContainer, plainContainer } from '../compose/main-container.ts';
import type { Mount } from '../compose/mounts.ts';
import type { ComposedService } from '../compose/services.ts';
import type { HealthCheck } from '../grading/task.ts';
import { type FileTree, filesIn } from '../sandbox/file-tree.ts';
import { imageName } from '../sandbox/image.ts';
import { type Beside, fileAt, readableFile, type ServiceFiles, type TaskService } from '../sandbox/service.ts';
import { mountedFiles } from './added-files.ts';
import { builtImageName, readBuildContext } from './build-context.ts';
import { configureDockerfile } from './build-settings.ts';
import { withOwnRules } from './docker-ignore.ts';
import { composeFileName, folderAbove, shownComposeFile } from './environment-files.ts';
import { buildNetwork } from './task-network.ts';
import type { TaskToml } from './task-toml.ts';

/** The containers of a task as its compose file describes them. */
export interface ComposedTask {
  readonly main: MainContainer;
  /** The containers beside the sandbox; null if there are none. */
  readonly beside: Beside<TaskService> | null;
  /** The further names of hosts that all of them know. */
  readonly hosts: readonly HostEntry[];
}

/**
 * Reads the compose file among the files of `environment/`. Like Harbor, it adds the service `main` to the file. Throws
 * TemperFailure MalformedTask and UnsupportedTask.
 */
export function readComposeFile(environment: FileTree, toml: TaskToml): ComposedTask {
  const file = environment.get(composeFileName);
  if (file === undefined) return { main: plainContainer, beside: null, hosts: [] };
  const source = { text: new TextDecoder().decode(file.bytes), file: shownComposeFile, files: environment };
  const { main, beside, hosts }: Composed = readCompose(source, {
    main: 'main',
    addsMain: true,
    variables: variablesOf(toml),
    above: folderAbove,
  });
  requireMounted(main, { folder: environment, file: shownComposeFile, services: beside?.services ?? [] });
  if (beside === null) return { main, beside, hosts };
  const services = beside.services.map((service) => {
    const reject = (field: string, expected: string, got: string): TemperFailure =>
      unsupported(`services.${service.name}.${field}`, expected, got);
    return readTaskService(service, { environment, toml, reject });
  });
  return { main, beside: { ...beside, services }, hosts };
}

/**
 * Reads the compose file beside the tests, among the files of `tests/`, which may add files of that folder to their container and
 * nothing else. Returns null if there is none. Throws MalformedTask and UnsupportedTask.
 */
export function readTestMounts(tests: FileTree, toml: TaskToml): readonly Mount[] | null {
  const file = tests.get(composeFileName);
  if (file === undefined) return null;
  const shown = `tests/${composeFileName}`;
  const { main, beside, hosts }: Composed = readCompose(
    { text: new TextDecoder().decode(file.bytes), file: shown, files: tests },
    { main: 'main', addsMain: true, variables: variablesOf(toml) },
  );
  const { mounts, ...settings } = main;
  const { mounts: _, ...plain } = plainContainer;
  const fields = Object.keys(plain).filter(
    (key) => !isDeepStrictEqual(Reflect.get(settings, key), Reflect.get(plain, key)),
  );
  const further = [...(beside === null ? [] : ['services']), ...(hosts.length === 0 ? [] : ['hosts']), ...fields];
  if (further.length > 0) {
    const expected =
      'files of tests/ for one container (start what the tests need by the entry point of tests/Dockerfile)';
    throw new TemperFailure('UnsupportedTask', `${shown}: expected ${expected}, got ${further.join(', ')}`);
  }
  requireMounted(main, { folder: tests, file: shown, services: [] });
  return mounts;
}

interface MountingFile {
  /** The files of the folder that the compose file is in. */
  readonly folder: FileTree;
  readonly file: string;
  readonly services: readonly ComposedService[];
}

/** Rejects files of the main container that are missing, and those that another service is meant to change or to see changed. */
function requireMounted({ mounts }: Pick<MainContainer, 'mounts'>, { folder, file, services }: MountingFile): void {
  for (const { source, readOnly } of mounts) {
    const shown = `./${source}`;
    if (mountedFiles(folder, source).size === 0) {
      throw unsupported('services.main.volumes', 'files that the task has', `${shown}, which is missing`, file);
    }
    const other = services.find((service) =>
      service.mounts.some((one) => overlap(one.source, source) && !(one.readOnly && readOnly)),
    );
    if (other === undefined) continue;
    const expected = `${shown} to be read-only (:ro) here and in ${other.name}, since each gets a copy (or a named volume)`;
    throw unsupported('services.main.volumes', expected, 'a folder that one of them may change');
  }
}

const overlap = (one: string, other: string): boolean =>
  [one, other].includes('') || `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`);

/** Docker's own values for what a health check leaves out. */
const usual = { intervalMs: 30_000, timeoutMs: 30_000, startPeriodMs: 0, retries: 3 } as const;
const startIntervalSec = 5;

/** Returns the health check of the main service as one of the task; null if it has none. */
export function mainHealthCheck({ healthCheck: check }: MainContainer): HealthCheck | null {
  const [form, ...words] = check?.test ?? ['NONE'];
  if (check === null || form === 'NONE' || words.length === 0) return null;
  const { intervalMs, timeoutMs, startPeriodMs, retries } = { ...usual, ...check };
  return {
    command: form === 'CMD-SHELL' ? words.join(' ') : words.map(quoted).join(' '),
    intervalSec: intervalMs / 1_000,
    timeoutSec: timeoutMs / 1_000,
    startPeriodSec: startPeriodMs / 1_000,
    startIntervalSec: Math.min(startIntervalSec, intervalMs / 1_000),
    retries,
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** The variables that Harbor passes to the file (harbor/environments/docker). */
const variablesOf = ({ environment }: TaskToml): Readonly<Record<string, string>> => ({
  MAIN_IMAGE_NAME: mainImage,
  CONTEXT_DIR: '.',
  TEST_DIR: '/tests',
  ENV_VERIFIER_LOGS_PATH: '/logs/verifier',
  ENV_AGENT_LOGS_PATH: '/logs/agent',
  ENV_ARTIFACTS_PATH: '/logs/artifacts',
  NETWORK_MODE: 'bridge',
  CPUS: String(environment.cpus),
  MEMORY: `${environment.memory_mb ?? environment.memory ?? 2048}M`,
});

interface ServiceSource {
  readonly environment: FileTree;
  readonly toml: TaskToml;
  readonly reject: (field: string, expected: string, got: string) => TemperFailure;
}

/** Adds the files of the task that a service is made from. */
function readTaskService({ mounts, texts, image, ...settings }: ComposedService, source: ServiceSource): TaskService {
  const mounted = mounts.map(({ source: path, target }): ServiceFiles => {
    const { environment, reject } = source;
    const entry = environment.get(path);
    if (entry !== undefined) return fileAt(target, entry);
    const tree = filesIn(environment, path);
    if (tree.size === 0) throw reject('volumes', 'files that the task has', `./${path}, which is missing`);
    return { tree, at: target };
  });
  const written = texts
    .filter((file) => !isOfHost(file))
    .map((file) => fileAt(file.target, readableFile(textIn(file))));
  return {
    ...settings,
    image: imageOf(image, source),
    files: [...mounted, ...written],
    hostFiles: texts.filter(isOfHost),
  };
}

function imageOf(image: ComposedService['image'], { environment, toml, reject }: ServiceSource): TaskService['image'] {
  if (image === 'main') return image;
  if ('name' in image) return imageName(image.name);
  const inFolder = filesIn(environment, image.context);
  const context = image.inline === null ? withOwnRules(inFolder, image.dockerfile) : inFolder;
  const dockerfile = context.get(image.dockerfile);
  const text = image.inline ?? (dockerfile === undefined ? null : new TextDecoder().decode(dockerfile.bytes));
  if (text === null) {
    throw reject('build', 'a Dockerfile in the context', `${image.context}/${image.dockerfile}, which is missing`);
  }
  const source = configureDockerfile(text, image, (expected, got) => reject('build.target', expected, got));
  const entry = { mode: 0o644, ...dockerfile, bytes: Buffer.from(source) };
  try {
    const build = readBuildContext(new Map([...context, ['Dockerfile', entry]]), toml.environment.build_timeout_sec);
    return { ...build, network: buildNetwork(toml, image), image: builtImageName(build) };
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    throw reject('build', 'a Dockerfile that can be built', error.message);
  }
}

const unsupported = (field: string, expected: string, got: string, file: string = shownComposeFile): TemperFailure =>
  new TemperFailure('UnsupportedTask', `${file}: ${field}: expected ${expected}, got ${got.slice(0, 300)}`);
