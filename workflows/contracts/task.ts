import { z } from 'zod';
import { blobRef } from './blob.ts';
import { hostToolNames } from './host-tools.ts';
import { integer, number, oneOf, text } from './input.ts';
import { networkPolicy } from './network.ts';
import { branchRule } from './trace.ts';

/** The largest number of GPUs of a sandbox. */
export const mostGpus = 64;

/** The largest number of steps of a task, each of which is a row of a rollout's result. */
export const mostTaskSteps = 40;

/** The part of a task's step by which a workflow decides. */
const taskStep = z.strictObject({
  name: text('the name of a step').max(64).describe('The name of the step and of its directory.'),
  agentTimeoutSec: z
    .exactOptional(number(1, 1_000_000, 'seconds'))
    .describe("The time limit of the agent in this step, in seconds. Default: the task's."),
  evaluationTimeoutSec: z
    .exactOptional(number(1, 1_000_000, 'seconds'))
    .describe("The time limit of the step's tests in seconds. Default: the task's."),
  minReward: z
    .exactOptional(z.number())
    .describe('The reward below which the steps after this one are left out. Default: none.'),
  minScores: z
    .exactOptional(z.record(z.string(), z.number()))
    .describe('The scores, by name, below which the steps after this one are left out. Default: none.'),
  network: z
    .exactOptional(networkPolicy)
    .describe("The hosts that the agent may reach in this step. Default: the task's."),
  testNetwork: z
    .exactOptional(networkPolicy)
    .describe("The hosts that the step's tests may reach. Default: the task's."),
});
export type TaskStep = Readonly<z.output<typeof taskStep>>;

/** A container beside a sandbox, with limits of its own. */
const besideSandbox = z.strictObject({
  name: text('the name of a service').describe('The name by which the sandbox reaches it.'),
  cpus: number(0.01, 1024).describe('The number of CPUs that it gets.'),
  memoryMb: number(16, 10_000_000, 'MB').describe('Its memory in MB.'),
});

/** The limits of processes that a container may set. */
export const ulimitNames = [
  'core',
  'cpu',
  'data',
  'fsize',
  'locks',
  'memlock',
  'msgqueue',
  'nofile',
  'nproc',
  'rss',
  'sigpending',
  'stack',
] as const;

/** A limit of the processes of a container; -1 stands for none. */
export const ulimit = z.strictObject({
  name: oneOf(ulimitNames).describe('The name of the limit, as Docker has it.'),
  soft: integer(-1, Number.MAX_SAFE_INTEGER).describe('The limit that a process begins with; -1: none.'),
  hard: integer(-1, Number.MAX_SAFE_INTEGER).describe('The limit to which a process may raise it; -1: none.'),
});
export type Ulimit = Readonly<z.output<typeof ulimit>>;

/** The largest number of further names of hosts of a sandbox. */
export const mostHosts = 64;

/** A name of a host that a sandbox knows beside those of its services. */
export const hostEntry = z.strictObject({
  name: text('the name of a host').max(253).describe('The name.'),
  address: text('an address').max(64).describe('Its address, of version 4 or 6.'),
});
export type HostEntry = Readonly<z.output<typeof hostEntry>>;

/** The largest number of directories in memory of a sandbox. */
export const mostMemoryDirectories = 16;

/** A directory of a sandbox that is in memory. */
const memoryDirectory = z.strictObject({
  path: z.string().startsWith('/').max(256).describe('The absolute path of the directory.'),
  sizeMb: integer(1, 10_000_000).describe('The size in MB, which counts as memory.'),
});

/**
 * The problem to solve. The files of a task (instruction, workspace, hidden tests, reference solution) are one blob in the store,
 * so that every host sees the same bytes and a verdict can be bound to them. Only this description is in workflow history.
 */
export const task = z.strictObject({
  id: text('a task id').describe('The id of the task, unique in its source, for example `quixbugs-bitcount`.'),
  bundle: blobRef.describe('A tar of the task directory in Harbor layout, packed deterministically.'),
  image: text('an image name').describe('The container image of the sandbox.'),
  imageFrom: z
    .exactOptional(oneOf(['registry', 'dockerfile']))
    .describe(
      'Where a host that lacks the image gets it: it pulls from the registry, or builds the Dockerfile in the bundle. ' +
        'Without it the host must already have the image.',
    ),
  workdir: z
    .string()
    .startsWith('/', { error: 'expected an absolute path' })
    .describe('The absolute path of the directory in the sandbox where the agent works.'),
  agentTimeoutSec: z
    .nullable(number(1, 1_000_000, 'seconds'))
    .describe('The time limit of the agent in seconds; null: the default of the rollout.'),
  evaluationTimeoutSec: z
    .nullable(number(1, 1_000_000, 'seconds'))
    .describe('The time limit of the tests in seconds; null: the default of the rollout.'),
  cpus: number(0.01, 1024).describe('The number of CPUs that the sandbox gets.'),
  memoryMb: number(16, 10_000_000, 'MB').describe('The memory of the sandbox in MB.'),
  diskMb: number(1, 100_000_000, 'MB').describe('The disk space in MB that the agent may use.'),
  services: z
    .exactOptional(z.array(besideSandbox))
    .describe('The containers beside each of its sandboxes. Without it there are none.'),
  gpus: z
    .exactOptional(integer(1, mostGpus))
    .describe('The number of GPUs that its sandboxes get. Without it they get none.'),
  gpuTypes: z
    .exactOptional(z.array(text('the type of a GPU').max(64)).min(1).max(32))
    .describe('The types of which these GPUs must be, for example `H100`. Without it any type will do.'),
  sharedMemoryMb: z
    .exactOptional(integer(1, 10_000_000))
    .describe('The size of `/dev/shm` in its sandboxes in MB, which counts as memory. Without it: 64.'),
  tmpfs: z
    .exactOptional(z.array(memoryDirectory).min(1).max(mostMemoryDirectories))
    .describe('The directories of its sandboxes that are in memory. Without it there are none.'),
  hosts: z
    .exactOptional(z.array(hostEntry).min(1).max(mostHosts))
    .describe('The further names of hosts that its sandboxes know. Without it there are none.'),
  ulimits: z
    .exactOptional(z.array(ulimit).min(1).max(ulimitNames.length))
    .describe("The limits of the processes in its Docker sandboxes. Without it they are the daemon's."),
  gradedIn: z
    .exactOptional(oneOf(['same', 'snapshot', 'snapshot-or-fresh', 'artifacts']))
    .describe(
      "Where the tests run: `same`: in the agent's own sandbox; `snapshot`: in a fresh one with all that the agent " +
        'changed in its own; `snapshot-or-fresh`: like `snapshot` if the kind of sandbox can carry it, otherwise over the ' +
        'diff; `artifacts`: in a sandbox of an image of their own, with the files that the task names. Without it: in a ' +
        'fresh sandbox, over the diff.',
    ),
  user: z
    .exactOptional(oneOf(['root']))
    .describe('`root`: agent and tests are root of their container. Without it they have accounts without rights.'),
  hostTools: z
    .exactOptional(hostToolNames)
    .describe('The host tools that the task asks for. Without it there are none.'),
  network: z.exactOptional(networkPolicy).describe('The hosts that the agent may reach. Without it there are none.'),
  testNetwork: z
    .exactOptional(networkPolicy)
    .describe('The hosts that the tests may reach. Without it there are none.'),
  testSandbox: z
    .exactOptional(
      z.strictObject({
        image: text('an image name').describe('The image of the tests.'),
        imageFrom: z
          .exactOptional(oneOf(['registry', 'dockerfile']))
          .describe('Where a host that lacks the image gets it.'),
        workdir: z.string().startsWith('/').describe('The directory in which the tests run.'),
        cpus: number(0.01, 1024).describe('The number of CPUs that the tests get.'),
        memoryMb: number(16, 10_000_000, 'MB').describe('The memory of the tests in MB.'),
        diskMb: number(1, 100_000_000, 'MB').describe('The disk space of the tests in MB.'),
      }),
    )
    .describe("The sandbox of the tests, if it differs from the agent's. Without it they are alike."),
  steps: z
    .exactOptional(z.array(taskStep).min(1).max(mostTaskSteps))
    .describe('The steps of a task that has several, in order. Without it the task is one piece of work.'),
  rewardOfSteps: z
    .exactOptional(oneOf(['final']))
    .describe(
      '`final`: the reward is that of the last step. Without it: the mean over the steps. In an evaluation only steps that ' +
        'ran count; in training those that did not begin count as 0.',
    ),
  step: z
    .exactOptional(integer(1, mostTaskSteps))
    .describe('The number of the step, from 1, whose files are meant. Set by rollouts, for each of their steps.'),
});
export type Task = Readonly<z.output<typeof task>>;

/** A task that was looked up once for all rollouts of a group. */
export const resolvedTask = z.strictObject({
  task: task.describe('The task, as it was packed.'),
  usesModel: z.boolean().describe('Whether the agent calls the model. A rollout whose agent does not has no trace.'),
  hostTools: z
    .exactOptional(hostToolNames)
    .describe('The host tools that the agent may call. Without it there are none.'),
  branches: z
    .exactOptional(branchRule)
    .describe("The agent's own rule of which branches are trained. Without it all are."),
});
export type ResolvedTask = Readonly<z.output<typeof resolvedTask>>;

/**
 * The address by which people name a task in an input. It is one string, so that it can be typed into a form:
 *
 * - `generated:train/7/12`: task 12 of seed 7 of the built-in generator, split `train` or `test`
 * - `harbor:/tasks/foo`: a directory in Harbor layout below one of the stack's task roots
 * - `blob:<sha256>#<id>`: a packed task in the store; without the id, the task gets one made of the digest
 * - `swe-gym:/rows.jsonl#id`: a task of a data set by format, location (a path, a URL, `hub:<owner>/<name>`) and id
 */
export type TaskAddress = string;

/** A list of tasks by address: `generated:train/7?count=64`, `harbor:/tasks`, `blob:<sha256>` of a list, `swe-gym:/rows.jsonl`. */
export type TaskSetAddress = string;
