import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { type ComposeFormat, mainImage } from '../../../compose/compose.ts';
import type { ComposedService } from '../../../compose/services.ts';
import { writeCompose } from '../../../compose/write.ts';
import { mountedFiles } from '../../../harbor/added-files.ts';
import { text } from '../../../harbor/harbor-files.ts';
import type { FileEntry, FileTree } from '../../../sandbox/files.ts';
import type { Beside } from '../../../sandbox/service.ts';
import { isHidden } from './image-files.ts';

/** The compose files of this format (terminal_bench/terminal/docker_compose_manager.py). */
export const composeFormat: ComposeFormat = {
  main: 'client',
  addsMain: false,
  variables: {
    T_BENCH_TEST_DIR: '/tests',
    T_BENCH_CONTAINER_LOGS_PATH: '/logs',
    T_BENCH_CONTAINER_AGENT_LOGS_PATH: '/agent-logs',
    T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: mainImage,
    T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: 'client',
    T_BENCH_TASK_DOCKER_NAME_PREFIX: 'task',
  },
};

interface ServiceFiles {
  /** The services beside the client; null if there are none. */
  readonly beside: Beside<ComposedService> | null;
  /** The image of the client: its name, or the files to build it from. */
  readonly image: string | FileTree;
  /** Whether the commands of its build run without a network. */
  readonly buildsOffline: boolean;
  /** The path of the compose file, for messages. */
  readonly file: string;
}

const alone: Beside<ComposedService> = { services: [], names: [], volumes: [] };

/**
 * Returns the files of `environment/` that describe the containers and that the services are made from. Tests and solution are in
 * none of them, and the compose file is in no image.
 */
export function serviceFiles(
  tree: FileTree,
  { beside: given, image, buildsOffline, file }: ServiceFiles,
): FileTree | undefined {
  if (given === null && !buildsOffline) return undefined;
  const beside = given ?? alone;
  const added = new Map<string, FileEntry>();
  const reject = (service: string, field: string, expected: string, got: string): TemperFailure =>
    new TemperFailure('UnsupportedTask', `${file}: services.${service}.${field}: expected ${expected}, got ${got}`);
  const services = beside.services.map((service): ComposedService => {
    for (const { source } of service.mounts) {
      const files = visible(mountedFiles(tree, source));
      if (files.length === 0)
        throw reject(service.name, 'volumes', 'files of the task other than its tests and solution', `./${source}`);
      for (const [path, entry] of files) added.set(path, entry);
    }
    const { image: made } = service;
    if (made === 'main' || 'name' in made) return service;
    for (const [path, entry] of visible(mountedFiles(tree, made.context))) added.set(path, entry);
    // The Dockerfile of this folder becomes that of the client, which may have another, or none.
    if (made.context !== '' || made.inline !== null) return service;
    const dockerfile = `Dockerfile.${service.name}`;
    const entry = isHidden(made.dockerfile) ? undefined : tree.get(made.dockerfile);
    if (entry === undefined) throw reject(service.name, 'build.dockerfile', 'a file of the task', made.dockerfile);
    added.set(dockerfile, entry);
    return { ...service, image: { ...made, dockerfile } };
  });
  if (typeof image === 'string') {
    added.delete('Dockerfile');
    const misplaced = [...added.keys()].find((path) => path.startsWith('workspace/'));
    if (misplaced !== undefined)
      throw reject('client', 'image', 'a build, since files in workspace/ would be the workdir', image);
  } else {
    // A context in a folder of the task becomes the whole of environment/, where the files of services are, too.
    const other = [...added].find(([path, entry]) => !ofBuild.includes(path) && differs(image.get(path), entry))?.[0];
    if (other !== undefined)
      throw reject('client', 'build.context', 'a folder with no file of a name that services have in the task', other);
  }
  const ignored = new TextDecoder().decode((typeof image === 'string' ? tree : image).get('.dockerignore')?.bytes);
  return new Map([
    ...added,
    ...(typeof image === 'string' ? [] : image),
    ['.dockerignore', text(`${ignored}\n${composeName}\n`)],
    [composeName, text(writeCompose({ ...beside, services }, { buildsOffline }))],
  ]);
}

/** Files of a context that every build has its own of. */
const ofBuild = ['Dockerfile', '.dockerignore'];

const differs = (one: FileEntry | undefined, other: FileEntry): boolean =>
  one !== undefined && Buffer.compare(one.bytes, other.bytes) !== 0;

const composeName = 'docker-compose.yaml';

const visible = (files: FileTree): readonly (readonly [string, FileEntry])[] =>
  [...files].filter(([path]) => !isHidden(path));
