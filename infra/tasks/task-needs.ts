import { rewardForGivingUp } from '../../workflows/algorithms/task-step.ts';
import type { NetworkPolicy } from '../../workflows/contracts/network.ts';
import { longestScript } from '../harbor/downloads.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import { neededVariables } from '../harbor/host-variables.ts';
import { newestVersion } from '../harbor/task-toml.ts';
import { memoryOf } from '../machine/fit.ts';
import type { FileEntry } from '../sandbox/files.ts';
import { imagesBeside } from '../sandbox/service.ts';
import { generatedImage } from './generated/generate.ts';
import { lacksTmux } from './lacks-tmux.ts';
import { buildDownloads, buildsOf, lineOfRoot, needsRoot, placeWithoutProxy, scriptsOf, textOf } from './scripts.ts';

/** The facts of a host on which some needs depend. */
export interface NeedyHost {
  readonly memoryMb: number;
  /** The fate of tasks that need an image, where the sandboxes of the settings have none; null where they have. */
  readonly withoutImages: string | null;
}

export interface Need {
  /** The meaning of the need for the user who runs the task. */
  readonly what: string | ((host: NeedyHost) => string);
  readonly isNeeded: (task: HarborTask, host: NeedyHost) => boolean;
  /** Returns where a task shows the need, for one that is an example of it. */
  readonly place?: (task: HarborTask) => string | null;
}

/** The ways in which tests get an agent's work. */
export const gradings: Readonly<Record<HarborTask['gradedIn'], string>> = {
  fresh: 'a fresh sandbox, with the diff of the workdir',
  snapshot: 'a fresh sandbox, with all that the agent changed',
  'snapshot-or-fresh': 'a fresh sandbox, with all that the agent changed, but in E2B with the diff of the workdir',
  artifacts: 'a sandbox of an image of their own, with the artifacts of the task',
  same: "the agent's own sandbox, with all that the agent left there",
};

/** The ways to make an agent root. */
const askedRoot = '[agent] user = "root", or harbor:…?user=root and terminal-bench:…?user=root for the whole set';

/** The needs of tasks that can be seen in their files. */
export const needs = {
  container: {
    what: 'their files are in an image: Docker, Kubernetes or E2B',
    isNeeded: ({ workspace }) => workspace.size === 0,
  },
  'sandboxes with images': {
    what: ({ withoutImages }: NeedyHost) => withoutImages ?? 'Docker, Kubernetes or E2B',
    isNeeded: ({ workspace, build, beside, testImage }, { withoutImages }) =>
      withoutImages !== null && (workspace.size === 0 || build !== null || beside !== null || testImage !== null),
  },
  'a workdir for the tests': {
    what: 'their tests write in it: any sandbox but a local one of root',
    isNeeded: ({ ownWorkdir }) => ownWorkdir,
  },
  'programs of an image': {
    what: 'their files fit a local sandbox, which has the programs of this machine instead',
    isNeeded: ({ workspace, description }) => workspace.size > 0 && description.image !== generatedImage,
  },
  'files outside the workdir': {
    what: 'their tests or artifacts are there, and a fresh sandbox has none that the agent made: [grading] sandbox = "snapshot"',
    isNeeded: (task) => task.gradedIn === 'fresh' && task.grading === null && placeOutside(task) !== null,
    place: placeOutside,
  },
  'the name of the workdir': {
    what: 'neither task.toml nor a Dockerfile says where the work is, so it is in /workspace: environment.workdir',
    isNeeded: ({ guessesWorkdir }) => guessesWorkdir,
  },
  'a later version of the format': {
    what: `their task.toml is newer than ${newestVersion}: fields that came later are not read`,
    isNeeded: ({ laterVersion }) => laterVersion !== null,
  },
  'a snapshot': {
    what: 'their tests get all that the agent changed in its sandbox, or look outside its workdir: any but E2B',
    isNeeded: (task) =>
      task.gradedIn === 'snapshot' || (task.gradedIn === 'snapshot-or-fresh' && placeOutside(task) !== null),
    place: placeOutside,
  },
  'an image of the tests': {
    what: 'it holds the tests, and gets only the artifacts: Docker or a remote sandbox',
    isNeeded: ({ testImage }) => testImage !== null,
  },
  'directories in memory': {
    what: 'their compose file names some (tmpfs), or a size of /dev/shm (shm_size): Docker or Kubernetes',
    isNeeded: ({ description }) => description.tmpfs !== undefined || description.sharedMemoryMb !== undefined,
  },
  'files in memory for the tests': {
    what: 'their tests look into a directory in memory, which is empty in a fresh sandbox: [grading] sandbox = "same"',
    isNeeded: (task) => task.gradedIn !== 'same' && placeInMemory(task) !== null,
    place: placeInMemory,
  },
  'names of hosts': {
    what: 'their compose file names hosts by their addresses (extra_hosts): Docker or Kubernetes',
    isNeeded: ({ description }) => description.hosts !== undefined,
  },
  'much memory': {
    what: 'their limit is more than the memory of this host: they run, and fail if they use more than there is',
    isNeeded: ({ description }, { memoryMb }) => mostMemoryOf(description) > memoryMb,
  },
  GPUs: {
    what: "they are passed through by a Docker host that has NVIDIA's container toolkit",
    isNeeded: ({ description }) => description.gpus !== undefined,
  },
  'GPUs of a type': {
    what: 'their hosts tell the types of their GPUs by nvidia-smi, and have one that gpu_types names',
    isNeeded: ({ description }) => description.gpuTypes !== undefined,
  },
  "the agent's sandbox": {
    what: 'their tests run in it, with all that the agent left there; a regrade leaves them out',
    isNeeded: ({ gradedIn }) => gradedIn === 'same',
  },
  "the agent's processes": {
    what: 'their tests need them: any sandbox but a local one',
    isNeeded: ({ keepProcesses }) => keepProcesses,
  },
  'commands that collect': {
    what: 'they run beside the processes that the agent left: in a local sandbox they find only its files',
    isNeeded: ({ collect }) => collect.length > 0,
  },
  "the image's entry point": {
    what: 'it runs beside the agent and its tests: any sandbox but a local one',
    isNeeded: ({ entrypoint }) => entrypoint !== null,
  },
  services: {
    what: 'further containers of their compose file run beside each sandbox: Docker',
    isNeeded: ({ beside }) => beside !== null,
  },
  'image pull': {
    what: 'their image, or that of a service or of the tests, comes from a registry',
    isNeeded: ({ description, beside }) =>
      description.imageFrom === 'registry' ||
      description.testSandbox?.imageFrom === 'registry' ||
      imagesBeside(beside).some((image) => 'from' in image && image.from === 'registry'),
  },
  'image build': {
    what: 'their image, or that of a service or of the tests, is built from a Dockerfile',
    isNeeded: (task) => buildsOf(task).length > 0,
  },
  'network for the build': {
    what: 'their Dockerfile downloads: TEMPER_NETWORK=public',
    isNeeded: (task) => buildsOf(task).some(buildDownloads),
  },
  'network for the agent': {
    what: 'their agent is meant to reach hosts outside: TEMPER_NETWORK',
    isNeeded: ({ description: { network, steps = [] } }) =>
      [network, ...steps.map((step) => step.network)].some(asksForHosts),
  },
  'variables of the host': {
    what: 'their environments name some without a default: TEMPER_TASK_VARIABLES',
    isNeeded: (task) => neededVariables(task).length > 0,
  },
  'MCP servers for the agent': {
    what: 'an agent that calls them: claude-code, codex or opencode',
    isNeeded: ({ mcpServers }) => mcpServers.length > 0,
  },
  'host tools': {
    what: "an agent that calls them: mini, terminal, pi, claude-code, codex or opencode; those that are not temper's own: TEMPER_TOOLS",
    isNeeded: ({ description }) => description.hostTools !== undefined,
  },
  'an OpenEnv environment': {
    what: 'its address is in environments.json of the stack: TEMPER_ENVIRONMENTS; without it, no agent can play',
    isNeeded: ({ description }) => description.hostTools?.includes('environment') === true,
  },
  'skills for the agent': {
    what: 'an agent that reads skills: claude-code, codex, opencode or pi',
    isNeeded: ({ skillsDirectory }) => skillsDirectory !== null,
  },
  'network for the tests': {
    what: 'their tests download, or are meant to reach hosts outside: TEMPER_NETWORK, or --offline-tests',
    isNeeded: ({ description }) => testNetworksOf(description).some(asksForHosts),
    place: ({ description }) => testNetworksOf(description).find(asksForHosts)?.neededFor ?? null,
  },
  'programs that ignore proxies': {
    what: 'a network is reached by proxy settings alone, which ssh, ping, Maven, Gradle and others do not read',
    isNeeded: (task) => placeWithoutProxy(task) !== null,
    place: placeWithoutProxy,
  },
  'root for the agent': {
    what: 'their agent is root of its container: Docker or Kubernetes',
    isNeeded: ({ description }) => description.user === 'root',
  },
  'root for the work': {
    what: `their solution needs root, or their tests look outside the workdir, where the agent may not write: ${askedRoot}`,
    isNeeded: (task) => task.description.user !== 'root' && placeForRoot(task) !== null,
    place: placeForRoot,
  },
  'root for the tests': {
    what: `their tests install programs or change files of the system: ${askedRoot}`,
    isNeeded: ({ description, tests }) => description.user !== 'root' && scriptsOf(tests).some(needsRoot),
  },
  'a running service': {
    what: 'their tests connect to a port of the sandbox: what the agent started may have ended before they run',
    isNeeded: ({ tests }) => [...tests.values()].some(usesPort),
  },
  'several steps': {
    what: 'each has an agent and tests of its own, in a fresh sandbox',
    isNeeded: ({ steps }) => steps.length > 0,
  },
  'no reward for giving up': {
    what: 'ending early gives more in an evaluation than failing the next step; training counts steps that do not begin as 0',
    isNeeded: ({ description }) => rewardForGivingUp(description) !== null,
    place: ({ description }) => rewardForGivingUp(description),
  },
  'tmux for the solution': {
    what: 'their solution.yaml is typed into it, and their image lacks it: no oracle can solve them until it has tmux',
    isNeeded: lacksTmux,
  },
  'a reference solution': {
    what: 'they have none, so temper tasks validate cannot say that they can be solved',
    isNeeded: ({ solution }) => solution.size === 0,
  },
} as const satisfies Readonly<Record<string, Need>>;

export type NeedName = keyof typeof needs;

/** Returns the memory in MB that a task may use at once, by its limits: with its services, or in the sandbox of its tests. */
export const mostMemoryOf = (description: HarborTask['description']): number =>
  Math.max(memoryOf(description), description.testSandbox?.memoryMb ?? 0);

/** Whether a phase with this policy needs a network: it asks for one that is not optional. */
const asksForHosts = (policy: NetworkPolicy | undefined): boolean =>
  policy !== undefined && policy.mode !== 'none' && policy.optional !== true;

const testNetworksOf = ({ testNetwork, steps = [] }: HarborTask['description']) => [
  testNetwork,
  ...steps.map((step) => step.testNetwork),
];

/** The address of a port on the sandbox's own network device. */
const port = /\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):\d{2,5}\b|\bconnect\(\(["'](?:localhost|127\.0\.0\.1)["']/;
const usesPort = (entry: FileEntry): boolean => entry.bytes.byteLength <= longestScript && port.test(textOf(entry));

/** An absolute path in one of the directories where tasks have agents leave something. */
const ownPath =
  /(?<![\w.$}/:-])\/(?:app|data|home|mnt|outputs?|results|root|srv|testbed|work|workspace)\/[\w.-]+(?:\/[\w.-]+)*/g;

/** Returns where a task's tests or artifacts are outside the workdir; null if nowhere. */
function placeOutside(
  { tests, keepsOutside, description: { workdir } }: HarborTask,
  counts: (path: string) => boolean = () => true,
): string | null {
  const inside = `${workdir.replace(/\/$/, '')}/`;
  for (const [name, { bytes }] of tests) {
    if (bytes.byteLength > longestScript) continue;
    const paths = [...new TextDecoder().decode(bytes).matchAll(ownPath)];
    const [path] = paths.find(([one]) => !`${one}/`.startsWith(inside) && counts(one)) ?? [];
    if (path !== undefined) return `tests/${name}: ${path}`;
  }
  return keepsOutside ? 'task.toml: artifacts' : null;
}

/** Returns where a task shows that its agent is meant to be root; null if nowhere. An agent without rights has a home, too. */
function placeForRoot(task: HarborTask): string | null {
  for (const script of scriptsOf(task.solution)) {
    const line = lineOfRoot(script);
    if (line !== undefined) return `solution: ${line.trim().slice(0, 60)}`;
  }
  return task.workspace.size > 0 ? null : placeOutside(task, (path) => !path.startsWith('/home/agent/'));
}

/** Returns where a task's tests name a directory in memory; null if nowhere. */
function placeInMemory({ tests, description: { tmpfs = [] } }: HarborTask): string | null {
  for (const [name, entry] of tests) {
    if (entry.bytes.byteLength > longestScript) continue;
    const text = textOf(entry);
    const found = tmpfs.find(({ path }) => path !== '/tmp' && text.includes(`${path}/`));
    if (found !== undefined) return `tests/${name}: ${found.path}`;
  }
  return null;
}
