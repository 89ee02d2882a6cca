import type { Task } from '../../workflows/contracts/task.ts';
import type { ImageName } from './image.ts';

/** The requirements of a task and its rollout on the sandbox. */
export interface SandboxNeeds {
  readonly task: string;
  /** Absolute paths that must exist under these very names, e.g. `/workspace` and `/tests`. */
  readonly paths: readonly string[];
  readonly image: string;
  /** The time for which the sandbox must live; absent if it is not known yet. */
  readonly lifetimeMs?: number;
  /** The part of that time for waits for an engine, of which its provider may leave less. Default: 0. */
  readonly waitingMs?: number;
  /** Whether the image itself contains the files to be worked on. */
  readonly filesInImage: boolean;
  /** The most CPUs that one of its containers may use. Default: no more than every host has. */
  readonly cpus?: number;
  /** The number of GPUs that it is to have. Default: none. */
  readonly gpus?: number;
  /** The types that these GPUs may have. Default: any. */
  readonly gpuTypes?: readonly string[];
  /** The directories that it has in memory, and a size of `/dev/shm`, in words. Default: none. */
  readonly inMemory?: string;
  /** The names of hosts that it is to know. Default: none. */
  readonly hosts?: readonly string[];
  /** Whether the agent is to be root of its container. */
  readonly root?: boolean;
  /** The names of the containers beside it. */
  readonly services?: readonly string[];
  /** The source of an image that this host lacks; absent if it has none. */
  readonly imageFrom?: ImageName['from'] | 'dockerfile';
}

/** The reason why a kind of sandbox can't run a task; the message names the task. */
export interface UnsupportedReason {
  readonly type: 'UnsupportedTask' | 'MissingImage';
  readonly message: string;
}

/** The facts of a task that decide the kind of its sandbox. */
export type PlacedTask = Pick<
  Task,
  | 'id'
  | 'image'
  | 'imageFrom'
  | 'workdir'
  | 'gpus'
  | 'gpuTypes'
  | 'user'
  | 'services'
  | 'sharedMemoryMb'
  | 'tmpfs'
  | 'hosts'
> &
  Partial<Pick<Task, 'cpus' | 'testSandbox'>>;

/** The requirements that come from the rollout. */
export type RolloutNeeds = Pick<SandboxNeeds, 'filesInImage' | 'lifetimeMs' | 'waitingMs'>;

/** Fixed paths of Harbor's layout, which tests depend on. */
const fixedPaths = ['/tests', '/logs/verifier'];

/** Returns what a task and its rollout require of the sandbox. */
export const needsOf = (task: PlacedTask, ofRollout: RolloutNeeds): SandboxNeeds => ({
  task: task.id,
  image: task.image,
  imageFrom: task.imageFrom ?? 'host',
  paths: [task.workdir, ...fixedPaths],
  ...(task.cpus !== undefined && { cpus: mostCpusOf(task) }),
  ...(task.gpus !== undefined && { gpus: task.gpus }),
  ...(task.gpuTypes !== undefined && { gpuTypes: task.gpuTypes }),
  ...inMemoryOf(task),
  ...(task.hosts !== undefined && { hosts: task.hosts.map(({ name }) => name) }),
  root: task.user === 'root',
  services: (task.services ?? []).map(({ name }) => name),
  ...ofRollout,
});

/** Returns the most CPUs that one container of a task may use: its sandbox, a service, or the sandbox of its tests. */
export const mostCpusOf = ({ cpus = 0, services = [], testSandbox }: Partial<Task>): number =>
  Math.max(cpus, testSandbox?.cpus ?? 0, ...services.map((service) => service.cpus));

/** Returns what a task's sandbox has in memory, in words. */
function inMemoryOf({ sharedMemoryMb, tmpfs = [] }: PlacedTask): Pick<SandboxNeeds, 'inMemory'> {
  const shared = sharedMemoryMb === undefined ? [] : [`/dev/shm of ${sharedMemoryMb} MB`];
  const all = [...shared, ...tmpfs.map(({ path }) => path)];
  return all.length === 0 ? {} : { inMemory: all.join(', ') };
}
