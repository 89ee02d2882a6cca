import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Mount } from '../compose/mounts.ts';
import type { TestImage } from '../grading/task.ts';
import { type FileTree, subtree } from '../sandbox/file-tree.ts';
import { imageName } from '../sandbox/image.ts';
import { imageWith, layersOf } from './added-files.ts';
import { builtImageName, readBuildContext } from './build-context.ts';
import { readTestMounts } from './compose-file.ts';
import { withOwnRules } from './docker-ignore.ts';
import { readDockerfile, workdirIn } from './dockerfile.ts';
import { entrypointOf } from './entrypoint.ts';
import { gradingFile } from './grading-file.ts';
import { plainDockerfile } from './plain-dockerfile.ts';
import { buildNetwork } from './task-network.ts';
import { healthCheckOf, type StepToml, type TaskToml } from './task-toml.ts';

/*
 * Tests in an environment of their own (`environment_mode = "separate"`): with limits of their own, or in another image, which then
 * holds the tests. Such an image gets the artifacts of the task alone, as in Harbor.
 */

/** The environment of a task's tests, as far as it differs from the agent's. */
export interface TestEnvironment {
  readonly sandbox: NonNullable<Task['testSandbox']>;
  /** Null if it is the image of the task. */
  readonly image: TestImage | null;
}

interface Verifier {
  readonly environment_mode?: 'shared' | 'separate' | undefined;
  readonly environment?: object | undefined;
}

/** Returns the file by which the tests of a step have an image or services of their own; undefined if there is none. */
export function ownTestFile(
  tree: FileTree,
  { verifier }: Pick<TaskToml, 'verifier'>,
  step: StepToml,
): string | undefined {
  if (!isSeparate(step.verifier) && !(step.verifier.environment_mode === undefined && isSeparate(verifier)))
    return undefined;
  const directories = [`steps/${step.name}/tests`, 'tests'];
  return directories
    .flatMap((directory) => [`${directory}/Dockerfile`, `${directory}/docker-compose.yaml`])
    .find((path) => tree.has(path));
}

type AgentSandbox = Pick<Task, 'image' | 'imageFrom' | 'workdir' | 'cpus' | 'memoryMb' | 'diskMb'>;

/** Whether any tests of a task are meant to run in an environment of their own. */
export const hasSeparateTests = ({ verifier, steps }: Pick<TaskToml, 'verifier' | 'steps'>): boolean =>
  [{ verifier }, ...steps].some((one) => isSeparate(one.verifier));

const isSeparate = ({ environment_mode: mode, environment }: Verifier): boolean =>
  mode === 'separate' || (mode === undefined && environment !== undefined);

/** Whether the tests of a task have an image of their own, as far as its directory shows. */
export const hasTestImage = (tree: FileTree, toml: TaskToml): boolean =>
  isSeparate(toml.verifier) && (toml.verifier.environment?.docker_image !== undefined || tree.has('tests/Dockerfile'));

/** Reads the environment of a task's tests; null if it is like the agent's. Throws MalformedTask and UnsupportedTask. */
export function readTestEnvironment(tree: FileTree, toml: TaskToml, agent: AgentSandbox): TestEnvironment | null {
  const { verifier } = toml;
  const { environment } = verifier;
  if (verifier.environment_mode === 'shared' && environment !== undefined) {
    throw rejected('MalformedTask', 'environment', 'no such table, since environment_mode is "shared"', 'one');
  }
  if (!isSeparate(verifier)) return null;
  const mounts = readTestMounts(subtree(tree, 'tests/'), toml) ?? [];
  if (environment !== undefined) requireSupported(environment, toml.environment);
  const { cpus = agent.cpus } = environment ?? {};
  const memoryMb = environment?.memory_mb ?? environment?.memory ?? agent.memoryMb;
  const diskMb = environment?.storage_mb ?? environment?.storage ?? agent.diskMb;
  const limits = { cpus, memoryMb, diskMb };
  if (hasTestImage(tree, toml)) return withOwnImage(tree, toml, { mounts, agent: { ...agent, ...limits } });
  if (mounts.length > 0) {
    throw rejected(
      'UnsupportedTask',
      'environment',
      'an image of the tests for the mounts of their compose file',
      'none',
    );
  }
  if (environment === undefined) return null;
  requireLikeAgents(environment, agent);
  const { image, imageFrom, workdir } = agent;
  return { sandbox: { image, ...(imageFrom && { imageFrom }), workdir, ...limits }, image: null };
}

type EnvironmentToml = NonNullable<TaskToml['verifier']['environment']>;

/** Rejects what no sandbox has, and other GPUs than the agent's, which the tests get. */
function requireSupported({ gpus, gpu_types: types, tpu, os }: EnvironmentToml, agent: TaskToml['environment']): void {
  if (gpus > agent.gpus) {
    throw rejected('UnsupportedTask', 'environment.gpus', `at most the ${agent.gpus} of the environment`, String(gpus));
  }
  if (gpus > 0 && types.length > 0 && types.toSorted().join() !== agent.gpu_types.toSorted().join()) {
    const own = `those of the environment (${agent.gpu_types.join(', ') || 'any'})`;
    throw rejected('UnsupportedTask', 'environment.gpu_types', own, types.join(', '));
  }
  if (tpu !== undefined) throw rejected('UnsupportedTask', 'environment.tpu', 'no such table', 'one');
  if (os.toLowerCase() !== 'linux') throw rejected('UnsupportedTask', 'environment.os', 'linux', os);
}

/** Rejects what tests over the diff, in the image of the task, cannot have of their own. */
function requireLikeAgents({ workdir, env, healthcheck }: EnvironmentToml, agent: AgentSandbox): void {
  const alone = 'without an image of the tests';
  if (workdir !== undefined && workdir !== agent.workdir) {
    throw rejected('UnsupportedTask', 'environment.workdir', `${agent.workdir} ${alone}`, workdir);
  }
  if (Object.keys(env).length > 0) {
    throw rejected('UnsupportedTask', 'environment.env', `none ${alone}; use verifier.env`, 'some');
  }
  if (healthcheck !== undefined) throw rejected('UnsupportedTask', 'environment.healthcheck', `none ${alone}`, 'one');
}

interface OwnImage {
  /** The files of `tests/` that its container has beside those of its image. */
  readonly mounts: readonly Mount[];
  readonly agent: AgentSandbox;
}

function withOwnImage(tree: FileTree, toml: TaskToml, { mounts, agent }: OwnImage): TestEnvironment {
  requireOwnImageAlone(tree, toml);
  const { verifier, environment: ofTask } = toml;
  const own = verifier.environment;
  const tests = withOwnRules(subtree(tree, 'tests/'), 'Dockerfile');
  const source = new TextDecoder().decode(tests.get('Dockerfile')?.bytes);
  const named = own?.docker_image;
  const dockerfile = named === undefined ? readDockerfile(plainDockerfile(source).source) : null;
  const image = imageWith(named ?? tests, layersOf(tests, { mounts, directories: [], texts: [] }));
  const build =
    typeof image === 'string'
      ? null
      : {
          ...readBuildContext(image, own?.build_timeout_sec ?? ofTask.build_timeout_sec),
          network: buildNetwork({ environment: own ?? ofTask }),
        };
  const { cpus, memoryMb, diskMb } = agent;
  return {
    sandbox: {
      ...(build === null ? nameOf(named ?? '') : { image: builtImageName(build), imageFrom: 'dockerfile' as const }),
      workdir: own?.workdir ?? (dockerfile && workdirIn(dockerfile)) ?? agent.workdir,
      cpus,
      memoryMb,
      diskMb,
    },
    image: {
      build,
      env: own?.env ?? ofTask.env,
      entrypoint: entrypointOf(undefined, dockerfile?.entrypoint ?? null),
      healthCheck: healthCheckOf(own?.healthcheck),
    },
  };
}

function nameOf(named: string): Pick<Task, 'image' | 'imageFrom'> {
  const { image, from } = imageName(named);
  return { image, ...(from === 'registry' && { imageFrom: from }) };
}

/** Rejects what does not go together with an image of the tests. */
function requireOwnImageAlone(tree: FileTree, { steps, grading, tools }: TaskToml): void {
  const reject = (expected: string, got: string): never => {
    throw rejected('UnsupportedTask', 'environment', `${expected} beside an image of the tests`, got);
  };
  if (steps.length > 0) reject('one piece of work', `${steps.length} steps`);
  if (tree.has(gradingFile)) reject('tests that write a reward', `a ${gradingFile}`);
  if (grading.sandbox !== undefined) reject('no grading.sandbox', `"${grading.sandbox}"`);
  if (grading.code_as_agent || grading.own_workdir) reject('no code_as_agent and own_workdir', 'one');
  if (tools.host.includes('answer')) reject('no host tool answer', 'it');
}

const rejected = (
  type: 'MalformedTask' | 'UnsupportedTask',
  field: string,
  expected: string,
  got: string,
): TemperFailure => new TemperFailure(type, `task.toml: verifier.${field}: expected ${expected}, got ${got}`);
