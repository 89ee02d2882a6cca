import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { HostEntry } from '../../workflows/contracts/task.ts';
import { type Composed, mainImage, readCompose } from '../compose/compose.ts';
import { type MainContainer, plainContainer } from '../compose/main-container.ts';
import type { ComposedService } from '../compose/services.ts';
import type { HealthCheck } from '../grading/task.ts';
import type { FileEntry, FileTree } from '../sandbox/files.ts';
import { imageName } from '../sandbox/image.ts';
import type { Beside, ServiceFiles, TaskService } from '../sandbox/service.ts';
import { builtImageName, readBuildContext } from './build-context.ts';
import { buildNetwork } from './task-network.ts';
import type { TaskToml } from './task-toml.ts';

/** The only name of a compose file that Harbor reads. Files with other names, such as `docker-compose.yml`, are plain content. */
const fileName = 'docker-compose.yaml';
/** The file below a task's directory, for messages. */
const shown = `environment/${fileName}`;

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
  const file = environment.get(fileName);
  if (file === undefined) return { main: plainContainer, beside: null, hosts: [] };
  const source = { text: new TextDecoder().decode(file.bytes), file: shown, files: environment };
  const { main, beside, hosts }: Composed = readCompose(source, {
    main: 'main',
    addsMain: true,
    variables: variablesOf(toml),
  });
  if (main.mounts.length > 0) {
    const [{ source: from = '' } = {}] = main.mounts;
    throw unsupported('services.main.volumes', 'no files: COPY them in environment/Dockerfile', `./${from}`);
  }
  if (main.dockerfile !== plainContainer.dockerfile) {
    throw unsupported('services.main.build.dockerfile', plainContainer.dockerfile, main.dockerfile);
  }
  if (beside === null) return { main, beside, hosts };
  const services = beside.services.map((service) => {
    const reject = (field: string, expected: string, got: string): TemperFailure =>
      unsupported(`services.${service.name}.${field}`, expected, got);
    return readTaskService(service, { environment, toml, reject });
  });
  return { main, beside: { ...beside, services }, hosts };
}

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
function readTaskService({ mounts, image, ...settings }: ComposedService, source: ServiceSource): TaskService {
  return {
    ...settings,
    image: imageOf(image, source),
    files: mounts.map(({ source: path, target }): ServiceFiles => {
      const { environment, reject } = source;
      const entry = environment.get(path);
      if (entry !== undefined) return fileAt(target, entry);
      const tree = below(environment, path);
      if (tree.size === 0) throw reject('volumes', 'files that the task has', `./${path}, which is missing`);
      return { tree, at: target };
    }),
  };
}

function imageOf(image: ComposedService['image'], { environment, toml, reject }: ServiceSource): TaskService['image'] {
  if (image === 'main') return image;
  if ('name' in image) return imageName(image.name);
  const context = new Map(below(environment, image.context));
  const dockerfile = context.get(image.dockerfile);
  if (dockerfile === undefined) {
    throw reject('build', 'a Dockerfile in the context', `${image.context}/${image.dockerfile}, which is missing`);
  }
  context.set('Dockerfile', dockerfile);
  try {
    const build = readBuildContext(context, toml.environment.build_timeout_sec);
    return { ...build, network: buildNetwork(toml), image: builtImageName(build) };
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    throw reject('build', 'a Dockerfile that can be built', error.message);
  }
}

/** Places one file, which a mount gives its name. */
function fileAt(target: string, entry: FileEntry): ServiceFiles {
  const at = target.lastIndexOf('/');
  return { tree: new Map([[target.slice(at + 1), entry]]), at: target.slice(0, at) || '/' };
}

const below = (tree: FileTree, directory: string): FileTree =>
  new Map(
    [...tree].flatMap(([path, entry]): readonly (readonly [string, FileEntry])[] => {
      if (directory === '') return [[path, entry]];
      return path.startsWith(`${directory}/`) ? [[path.slice(directory.length + 1), entry]] : [];
    }),
  );

const unsupported = (field: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('UnsupportedTask', `${shown}: ${field}: expected ${expected}, got ${got.slice(0, 300)}`);
