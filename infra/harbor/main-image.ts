import { posix } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { defaultDockerfile } from '../compose/build.ts';
import type { MainContainer } from '../compose/main-container.ts';
import { type FileTree, filesIn, subtree } from '../sandbox/file-tree.ts';
import { type BuildContext, imageName } from '../sandbox/image.ts';
import { directoryLayer, imageWith, layersOf } from './added-files.ts';
import { agentIsRoot } from './agent-account.ts';
import { builtImageName, readBuildContext } from './build-context.ts';
import { configureDockerfile } from './build-settings.ts';
import { withOwnRules } from './docker-ignore.ts';
import type { Dockerfile } from './dockerfile.ts';
import { buildNetwork } from './task-network.ts';
import type { TaskToml } from './task-toml.ts';
import { workdirLines } from './workdir.ts';

/** The image of a task's sandboxes. */
export interface MainImage {
  readonly image: Pick<Task, 'image' | 'imageFrom'>;
  /** The files that it is built from; null for an image by name. */
  readonly build: BuildContext | null;
  /** The files of the workdir that are not in the image. */
  readonly workspace: FileTree;
}

interface Described {
  /** The files of `environment/`. */
  readonly environment: FileTree;
  readonly main: MainContainer;
}

/** Returns the text of the task's Dockerfile, with the settings of its compose file; null if there is none. */
export function dockerfileSource({ environment, main }: Described): string | null {
  const text = main.build.inline ?? textOf(filesIn(environment, main.context), main.dockerfile);
  if (text !== null) {
    return configureDockerfile(text, main.build, (expected, got) => unsupported('build.target', expected, got));
  }
  if (main.context === '' && main.dockerfile === defaultDockerfile) return null;
  const path = posix.join(main.context, main.dockerfile);
  throw unsupported('build.dockerfile', 'a file of environment/', `${path}, which is missing`);
}

/** The Dockerfile of a task, and where its work is. */
interface Made {
  readonly dockerfile: Dockerfile | null;
  readonly workdir: string;
}

/**
 * Returns the files of the workdir that are beside the image. An image with a name was built by the Dockerfile, if there is one,
 * as in Harbor; one that copied files elsewhere has all that the task needs.
 */
export function workspaceOf(
  { environment, main }: Described,
  { environment: { docker_image: image } }: TaskToml,
  { dockerfile, workdir }: Made,
): FileTree {
  if (image === undefined) return subtree(filesIn(environment, main.context), 'workspace/');
  const isComplete = dockerfile !== null && copiesElsewhere(dockerfile, workdir);
  return isComplete ? new Map() : subtree(environment, 'workspace/');
}

/** Whether a Dockerfile copies files of its context, other than the workspace into the workdir alone. */
const copiesElsewhere = ({ workspaceTarget, buildOnly }: Dockerfile, workdir: string): boolean =>
  workspaceTarget === null
    ? buildOnly.some((line) => /^(?:COPY|ADD)\s(?!.*--from=)/is.test(line))
    : workspaceTarget !== workdir;

/**
 * Reads the image of a task. It is built where its Dockerfile or the files that its compose file adds ask for that. Throws
 * MalformedTask and UnsupportedTask.
 */
export function readMainImage(
  { environment, main }: Described,
  toml: TaskToml,
  { source, dockerfile, workdir, workspace }: Pick<MainImage, 'workspace'> & Made & { readonly source: string | null },
): MainImage {
  const inFolder = filesIn(environment, main.context);
  const context = main.build.inline === null ? withOwnRules(inFolder, main.dockerfile) : inFolder;
  const directories = main.directories.filter((path) => path !== workdir);
  const layers = layersOf(environment, { ...main, directories });
  const named = toml.environment.docker_image ?? (dockerfile === null ? main.image : null);
  const image = named ?? (layers.length === 0 ? unmodifiedBase(dockerfile) : null);
  if (image !== null && layers.length === 0) return { image: nameOf(image), build: null, workspace };
  if (image === null && source === null) throw withoutImage();
  const own = workspace.size === 0 ? [] : [directoryLayer(workspace, workdir)];
  const files = imageWith(image ?? configured(context, source ?? ''), image === null ? layers : [...own, ...layers]);
  if (typeof files === 'string') throw new Error('expected files of an image, got its name');
  const build = {
    ...readBuildContext(files, toml.environment.build_timeout_sec),
    network: buildNetwork(toml, main.build),
    ...(!agentIsRoot(toml) && { lastLines: workdirLines(workdir, image === null ? (dockerfile?.user ?? null) : null) }),
  };
  return { image: { image: builtImageName(build), imageFrom: 'dockerfile' }, build, workspace: new Map() };
}

/** The files of a context whose Dockerfile has this text. */
const configured = (context: FileTree, source: string): FileTree =>
  textOf(context, defaultDockerfile) === source
    ? context
    : new Map([...context, [defaultDockerfile, { mode: 0o644, bytes: Buffer.from(source) }]]);

function textOf(environment: FileTree, path: string): string | null {
  const entry = environment.get(path);
  return entry === undefined ? null : new TextDecoder().decode(entry.bytes);
}

/** The base image of a Dockerfile that adds nothing to it, or null when the image must be built. */
function unmodifiedBase(dockerfile: Dockerfile | null): string | null {
  if (dockerfile === null) throw withoutImage();
  return dockerfile.buildOnly.length === 0 ? dockerfile.base : null;
}

function nameOf(named: string): Pick<Task, 'image' | 'imageFrom'> {
  const { image, from } = imageName(named);
  return { image, ...(from === 'registry' && { imageFrom: from }) };
}

const withoutImage = (): TemperFailure =>
  new TemperFailure(
    'MalformedTask',
    'task.toml: expected environment.docker_image or an environment/Dockerfile, got neither',
  );

const unsupported = (field: string, expected: string, got: string): TemperFailure =>
  new TemperFailure(
    'UnsupportedTask',
    `environment/docker-compose.yaml: services.main.${field}: expected ${expected}, got ${got}`,
  );
