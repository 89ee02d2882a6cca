import type { RolloutEpoch } from '../../workflows/contracts/ids.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { ChannelKind, PutFiles, SandboxMount, SandboxPurpose, SandboxSpec } from './sandbox.ts';
import type { Beside } from './service.ts';

/** The sandbox that a stage of a rollout asks for. */
export interface SandboxRequest {
  readonly name: string;
  readonly epoch: RolloutEpoch;
  readonly run: string;
  readonly task: Pick<
    Task,
    | 'id'
    | 'cpus'
    | 'memoryMb'
    | 'diskMb'
    | 'workdir'
    | 'user'
    | 'gpus'
    | 'gpuTypes'
    | 'sharedMemoryMb'
    | 'tmpfs'
    | 'hosts'
    | 'ulimits'
  >;
  /** The prepared image; see `prepareImage`. */
  readonly image: string;
  readonly purpose: SandboxPurpose;
  readonly sweep: boolean;
  /** The run or sweep whose share of the slots the sandbox takes; absent for one by hand, and for evaluations. */
  readonly share?: string | undefined;
  readonly expiresAtMs: number;
  readonly mounts: readonly SandboxMount[];
  /** Host directory with the gateways' sockets for this sandbox; null for a sandbox that needs none. */
  readonly gatewayDir: string | null;
  /** The way of its agent's model calls; absent for a sandbox that calls no model. */
  readonly channel?: ChannelKind;
  /** Files that are in the sandbox as soon as it runs. */
  readonly files: readonly PutFiles[];
  /** The containers beside the sandbox, whose images are prepared; null if there are none. */
  readonly beside: Beside | null;
}

/** The most processes and threads in a sandbox. */
const pids = 512;

/** The owner of a sandbox: a host of a stack. */
export interface SandboxOwner {
  readonly stack: string;
  /** Returns the fencing token of the host; null outside of one. */
  fence(): string | null;
}

/** Returns the spec of a requested sandbox, which belongs to this host of the stack. */
export function sandboxSpec({ stack, ...owner }: SandboxOwner, request: SandboxRequest): SandboxSpec {
  const {
    name,
    epoch,
    run,
    task,
    image,
    purpose,
    sweep,
    share,
    expiresAtMs,
    mounts,
    gatewayDir,
    channel,
    files,
    beside,
  } = request;
  const fence = owner.fence();
  return {
    name,
    image,
    labels: {
      stack,
      run,
      rollout: epoch.rollout,
      epoch: epoch.epoch,
      purpose,
      expiresAtMs,
      ...(sweep && { sweep }),
      ...(channel && { channel }),
      ...(fence !== null && { fence }),
      ...(share !== undefined && { share }),
    },
    cpus: task.cpus,
    memoryMb: task.memoryMb,
    diskMb: task.diskMb,
    pids,
    ...(task.gpus !== undefined && { gpus: task.gpus }),
    ...(task.gpuTypes !== undefined && { gpuTypes: task.gpuTypes }),
    ...(task.sharedMemoryMb !== undefined && { sharedMemoryMb: task.sharedMemoryMb }),
    ...(task.tmpfs !== undefined && { tmpfs: task.tmpfs }),
    ...(task.hosts !== undefined && { hosts: task.hosts }),
    ...(task.ulimits !== undefined && { ulimits: task.ulimits }),
    workdir: task.workdir,
    ...(task.user === 'root' && { root: true }),
    mounts,
    files,
    ...(gatewayDir !== null && { gatewayDir }),
    ...(beside !== null && { beside }),
  };
}
