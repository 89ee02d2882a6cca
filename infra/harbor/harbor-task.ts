import { posix } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { MainContainer } from '../compose/main-container.ts';
import type { GradedTask } from '../grading/task.ts';
import { type FileTree, subtree } from '../sandbox/file-tree.ts';
import type { BuildContext } from '../sandbox/image.ts';
import { type Beside, imagesBeside, namesBeside, type TaskService } from '../sandbox/service.ts';
import { readOnlyPaths } from './added-files.ts';
import { agentIsRoot } from './agent-account.ts';
import { artifactsFor, keepsOutside, requireSeparable } from './artifacts.ts';
import { mainHealthCheck, readComposeFile } from './compose-file.ts';
import { type Dockerfile, readDockerfile, workdirIn } from './dockerfile.ts';
import { entrypointOf } from './entrypoint.ts';
import { environmentFiles } from './environment-files.ts';
import { type Grading, gradingFile, parseGrading } from './grading-file.ts';
import { hostsAndLimitsOf } from './hosts-and-limits.ts';
import { dockerfileSource, readMainImage, workspaceOf } from './main-image.ts';
import { type McpServer, mcpServersOf } from './mcp-servers.ts';
import { networksAndSteps } from './networks-and-steps.ts';
import { plainDockerfile } from './plain-dockerfile.ts';
import { memoryOf } from './task-memory.ts';
import { type CollectCommand, collectOf, readSteps, requireGradedSteps, type StepFiles } from './task-steps.ts';
import { healthCheckOf, laterVersion, parseTaskToml, type TaskToml } from './task-toml.ts';
import { hasSeparateTests, hasTestImage, readTestEnvironment } from './test-environment.ts';
import { requireOwnDirectory } from './workdir.ts';

/** A validated task directory in Harbor layout. */
export interface HarborTask extends GradedTask {
  readonly description: Omit<Task, 'id' | 'bundle'>;
  readonly instruction: string;
  /** The beginning of a step, before its agent starts; null for a task that is one piece of work. */
  readonly begin: StepFiles['begin'] | null;
  /** Commands that run in the agent's sandbox once the agent has ended. */
  readonly collect: readonly CollectCommand[];
  /** The steps of a task that has several, in order. The task itself reads as its first one. */
  readonly steps: readonly StepFiles[];
  /** Files below `tools/`, for host tools. No sandbox gets them. */
  readonly toolFiles: FileTree;
  /** The build of the image, or null when the image has a name. */
  readonly build: BuildContext | null;
  /** The containers beside its sandboxes; null if there are none. */
  readonly beside: Beside<TaskService> | null;
  readonly grading: Grading | null;
  /** The directory in the sandbox with the skills of the agent, or null. */
  readonly skillsDirectory: string | null;
  /** The servers in the sandbox whose tools the agent may call. */
  readonly mcpServers: readonly McpServer[];
  /** The version of its `task.toml` if it is newer than all known ones: fields that came later are not read. */
  readonly laterVersion: string | null;
  /** Whether the task does not name its workdir. The default is used then, and its image may have another one. */
  readonly guessesWorkdir: boolean;
  /** Whether its author keeps files outside the workdir, which a fresh sandbox for the tests does not have. */
  readonly keepsOutside: boolean;
}

type Work = Pick<HarborTask, 'instruction' | 'tests' | 'solution' | 'testEnv' | 'collect' | 'begin' | 'keptScores'>;

const defaults = { workdir: '/workspace', memoryMb: 2048, diskMb: 2048 } as const;

/**
 * Reads and validates a task directory. Throws TemperFailure MalformedTask, or UnsupportedTask when the task needs more than a
 * sandbox provides.
 */
export function readHarborTask(tree: FileTree): HarborTask {
  const toml = parseTaskToml(textOf(tree, 'task.toml'));
  const steps = readSteps(tree, toml);
  const work = steps[0] ?? wholeTask(tree, toml);
  const ownImage = hasTestImage(tree, toml);
  const { environment } = toml;
  const ofEnvironment = environmentFiles(tree);
  const { main, beside, hosts } = readComposeFile(ofEnvironment, toml);
  const described = { environment: ofEnvironment, main };
  const source = dockerfileSource(described);
  const dockerfile = source === null ? null : readDockerfile(plainDockerfile(source).source);
  const named = environment.workdir ?? main.workdir ?? workdirOf(dockerfile);
  const workdir = requireOwnDirectory(named ?? defaults.workdir);
  const { grading, rewardWeights } = judgedBy(tree, toml);
  const entrypoint = entrypointOfMain(main, environment.entrypoint, dockerfile);
  const files = workspaceOf(described, toml, { dockerfile, workdir });
  const kind = { logged: grading !== null, hasEntrypoint: entrypoint !== null, hasServices: beside !== null, files };
  const gradedIn = ownImage ? 'artifacts' : gradedInOf(toml, kind);
  if (!ownImage) requireSeparable(toml, workdir);
  requireGradedSteps(toml, gradedIn);
  const { image, build, workspace } = readMainImage(described, toml, { source, dockerfile, workdir, workspace: files });
  const limits = { ...limitsOf(toml), ...main.limits };
  const testEnvironment = readTestEnvironment(tree, toml, { ...image, workdir, ...limits });
  return {
    description: {
      ...image,
      workdir,
      ...limits,
      ...memoryOf(toml, main, { workdir, memoryMb: limits.memoryMb }),
      ...hostsAndLimitsOf(toml, { hosts, ulimits: main.ulimits }),
      ...(beside !== null && { services: beside.services.map(limitsOfService) }),
      ...(testEnvironment !== null && { testSandbox: testEnvironment.sandbox }),
      ...gpusOf(toml),
      ...(gradedIn !== 'fresh' && { gradedIn }),
      ...agentOf(toml),
      ...networksAndSteps(toml, [work, ...steps], { judgedByLog: grading !== null, beside, hosts }),
    },
    ...work,
    steps,
    toolFiles: subtree(tree, 'tools/'),
    build,
    beside,
    entrypoint,
    healthCheck: healthCheckOf(environment.healthcheck) ?? mainHealthCheck(main),
    skillsDirectory: environment.skills_dir === undefined ? null : posix.resolve(workdir, environment.skills_dir),
    mcpServers: mcpServersOf(environment.mcp_servers, namesBeside(beside)),
    workspace,
    remove: environment.remove,
    setup: environment.setup,
    hiddenTests: environment.hidden_tests,
    env: { ...main.env, ...environment.env },
    solutionEnv: toml.solution.env,
    grading,
    laterVersion: laterVersion(toml),
    guessesWorkdir: named === null && files.size === 0,
    keepsOutside: keepsOutside(toml, workdir),
    rewardWeights,
    ...optionsOf(toml, readOnlyPaths(ofEnvironment, main.mounts, workdir)),
    gradedIn,
    testImage: testEnvironment?.image ?? null,
    artifacts: ownImage ? artifactsFor(toml, workdir) : [],
  };
}

const optionsOf = ({ grading }: TaskToml, readOnly: readonly string[]) => ({
  codeAsAgent: grading.code_as_agent,
  ownWorkdir: grading.own_workdir,
  keepProcesses: grading.keep_processes,
  protection: { testsInRepository: grading.tests_in_repository, paths: [...grading.protected, ...readOnly] },
});

/** Reads how the tests say what they found: by a log, or by a reward, which may be made of several scores. */
function judgedBy(tree: FileTree, toml: TaskToml): Pick<HarborTask, 'grading' | 'rewardWeights'> {
  const { reward_weights: rewardWeights = null } = toml.verifier;
  const grading = tree.has(gradingFile) ? parseGrading(textOf(tree, gradingFile)) : null;
  if (grading === null || rewardWeights === null) return { grading, rewardWeights };
  throw malformed('task.toml', `no verifier.reward_weights, since tests with a ${gradingFile} write no reward`, 'some');
}

/** The content of a task that is one piece of work. */
function wholeTask(tree: FileTree, toml: TaskToml): Work {
  const instruction = textOf(tree, 'instruction.md');
  if (instruction.trim() === '') throw malformed('instruction.md', 'the text of the task', 'an empty file');
  if (!hasTestImage(tree, toml)) textOf(tree, 'tests/test.sh');
  const [tests, solution] = [subtree(tree, 'tests/'), subtree(tree, 'solution/')];
  return {
    instruction,
    tests,
    solution,
    testEnv: toml.verifier.env,
    collect: collectOf(toml),
    begin: null,
    keptScores: [],
  };
}

/** Returns the task as one of its steps has it, or the task itself for none. Throws MalformedTask. */
export function ofStep(task: HarborTask, number: number | undefined): HarborTask {
  if (number === undefined) return task;
  const step = task.steps[number - 1];
  if (step === undefined) throw malformed('task.toml', `a step ${number}`, `${task.steps.length} steps`);
  return { ...task, ...step };
}

/** Returns the names of a task's images: of its sandbox, its services and its tests. */
export const imagesOf = ({ description, beside, testImage }: HarborTask): readonly string[] => [
  description.image,
  ...imagesBeside(beside).map(({ image }) => image),
  ...(testImage !== null && description.testSandbox !== undefined ? [description.testSandbox.image] : []),
];

/** The workdir that a Dockerfile names, or the place to which it copies the workspace. */
const workdirOf = (dockerfile: Dockerfile | null): string | null =>
  dockerfile === null ? null : (workdirIn(dockerfile) ?? dockerfile.workspaceTarget);

const limitsOf = ({ agent, verifier, environment }: TaskToml) => ({
  agentTimeoutSec: agent.timeout_sec ?? null,
  evaluationTimeoutSec: verifier.timeout_sec ?? null,
  cpus: environment.cpus,
  memoryMb: environment.memory_mb ?? environment.memory ?? defaults.memoryMb,
  diskMb: environment.storage_mb ?? environment.storage ?? defaults.diskMb,
});

const limitsOfService = ({ name, cpus, memoryMb }: TaskService) => ({ name, cpus, memoryMb });

/** The command of a sandbox: the task's own, or that of its compose file or its image. */
function entrypointOfMain(
  { entrypoint, command }: MainContainer,
  named: readonly string[] | undefined,
  dockerfile: Dockerfile | null,
) {
  const ofImage = dockerfile?.entrypoint ?? null;
  const isComposed = entrypoint !== undefined || command !== null;
  const composed = isComposed ? [...(entrypoint ?? ofImage ?? []), ...(command ?? [])] : undefined;
  return entrypointOf(named ?? composed, ofImage);
}

const gpusOf = ({ environment: { gpus, gpu_types: types } }: TaskToml): Pick<Task, 'gpus' | 'gpuTypes'> => ({
  ...(gpus > 0 && { gpus }),
  ...(gpus > 0 && types.length > 0 && { gpuTypes: types }),
});

const agentOf = (toml: TaskToml): Pick<Task, 'user' | 'hostTools'> => ({
  ...(agentIsRoot(toml) && { user: 'root' }),
  ...(toml.tools.host.length > 0 && { hostTools: toml.tools.host }),
});

/** The reasons why tests get the diff alone. */
const needsDiff = (toml: TaskToml, logged: boolean) =>
  [
    [logged, 'tests that are judged by their log get the diff alone'],
    [
      toml.environment.hidden_tests.length > 0,
      'environment.hidden_tests need the history of the workspace without the agent',
    ],
    [toml.grading.tests_in_repository, 'tests in the repository are restored from a diff only'],
    [toml.grading.code_as_agent, 'code_as_agent protects tests only from code that the diff brings'],
  ] as const;

interface TestKind {
  readonly logged: boolean;
  readonly hasEntrypoint: boolean;
  readonly hasServices: boolean;
  /** The files of the workdir that are beside the image. */
  readonly files: FileTree;
}

/**
 * Returns the sandbox of the tests. The default is a snapshot, which comes close to the agent's own sandbox, where Harbor runs
 * tests. Tests of a repository (a named image, and files in `environment/workspace`) get the diff, since that leaves an agent the
 * fewest ways to reach them. Neither holds what the agent changed in services, so the tests of a task with services run in its
 * sandbox.
 */
function gradedInOf(toml: TaskToml, kind: TestKind): GradedTask['gradedIn'] {
  requireGradable(toml, kind);
  const { logged, files, hasServices } = kind;
  if (toml.grading.sandbox !== undefined) return toml.grading.sandbox;
  const isRepository = toml.environment.docker_image !== undefined && files.size > 0;
  const isSeparate = hasSeparateTests(toml);
  const needsFresh = needsDiff(toml, logged).some(([needed]) => needed);
  if (hasServices && !isSeparate && !needsFresh && toml.steps.length === 0) return 'same';
  return isRepository || isSeparate || needsFresh ? 'fresh' : 'snapshot-or-fresh';
}

/** Rejects ways to run the tests that exclude each other. */
function requireGradable(toml: TaskToml, { logged, hasEntrypoint }: TestKind): void {
  const { grading } = toml;
  const clash = (field: string, expected: string): TemperFailure =>
    malformed('task.toml', `no grading.${field}, since ${expected}`, 'it');
  const { sandbox, keep_processes: keepsProcesses, own_workdir: ownWorkdir } = grading;
  if (ownWorkdir && (logged || grading.code_as_agent)) {
    throw clash('own_workdir', 'the code under test keeps the workdir here');
  }
  if (keepsProcesses && sandbox !== 'same') {
    throw clash('keep_processes', 'the tests run in a fresh sandbox; set sandbox = "same"');
  }
  if (grading.code_as_agent && agentIsRoot(toml)) {
    throw clash('code_as_agent', 'the agent is root, from which no other account is protected (agent.user)');
  }
  if (sandbox === undefined || sandbox === 'fresh') return;
  const [, reason] = needsDiff(toml, logged).find(([needed]) => needed) ?? [];
  if (reason !== undefined) throw clash(`sandbox = "${sandbox}"`, reason);
  if (sandbox === 'same' && hasEntrypoint && agentIsRoot(toml) && !keepsProcesses) {
    throw clash(
      'sandbox = "same" without keep_processes = true',
      "what runs as root ends with the agent, and so would the image's entry point",
    );
  }
}

function textOf(tree: FileTree, path: string): string {
  const entry = tree.get(path);
  if (entry === undefined) throw malformed(path, 'a file', 'none');
  return new TextDecoder().decode(entry.bytes);
}

const malformed = (file: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('MalformedTask', `${file}: expected ${expected}, got ${got}`);
