import { isRemote, type SandboxChoice } from '../../workflows/contracts/sandbox-kinds.ts';
import { type Level, type Resource, resources, scarcest } from './level.ts';

/** The amounts of each resource: memory and disk in MB. */
export type Amounts = Readonly<Record<Resource, number>>;

/** The limits of a task that bound what its sandbox may use. */
export interface TaskLimits {
  readonly memoryMb: number;
  readonly diskMb: number;
  /** The containers beside its sandbox; absent if there are none. */
  readonly services?: readonly { readonly memoryMb: number }[];
}

/** The limits of a task that names none. */
export const usualTask: TaskLimits = { memoryMb: 2_048, diskMb: 2_048 };

/** The most processes of one sandbox: 512 of the agent, and those of temper itself. */
const sandboxProcesses = 576;
/** Handles that the host worker holds for one rollout: sockets, pipes and logs. */
const sandboxHandles = 32;

/** The amounts that stay free for temper's own processes and the rest of the machine. */
export const kept: Amounts = { memory: 1_024, processes: 512, handles: 256, disk: 1_024 };

/** The amounts that one rollout with a remote sandbox takes of this machine: for its session, its journal and its connections. */
const remoteNeed: Amounts = { memory: 16, processes: 1, handles: sandboxHandles, disk: 16 };

/** Returns the memory in MB of a task's sandbox together with its services. */
export const memoryOf = ({ memoryMb, services = [] }: Omit<TaskLimits, 'diskMb'>): number =>
  services.reduce((sum, service) => sum + service.memoryMb, memoryMb);

/** Returns the most that one rollout of a task may use of this machine. */
export function needOf(limits: TaskLimits, sandbox: SandboxChoice): Amounts {
  if (isRemote(sandbox)) return remoteNeed;
  const processes = sandboxProcesses * (1 + (limits.services ?? []).length);
  return { memory: memoryOf(limits), processes, handles: sandboxHandles, disk: limits.diskMb };
}

/** Describes what a usual rollout may use of this machine. */
export function usualNeedText(sandbox: SandboxChoice): string {
  const { memory, disk } = needOf(usualTask, sandbox);
  return isRemote(sandbox)
    ? `takes ${memory} MB of memory here for its remote sandbox`
    : `uses all that a usual task may (${memory} MB of memory, ${disk} MB of disk)`;
}

export interface Fit {
  readonly rollouts: number;
  /** The level that bounds the number; null if none is known. */
  readonly limitedBy: Level | null;
}

/** Returns how many rollouts fit if each uses all that it may: of the whole machine, or of what is free now. */
export function fitOf(levels: readonly Level[], need: Amounts, by: 'free' | 'total'): Fit {
  let least: Fit = { rollouts: Number.MAX_SAFE_INTEGER, limitedBy: null };
  for (const resource of resources) {
    const level = scarcest(levels, resource, by);
    if (level === undefined) continue;
    const rollouts = Math.max(0, Math.floor((level[by] - kept[resource]) / need[resource]));
    if (rollouts < least.rollouts) least = { rollouts, limitedBy: level };
  }
  return least;
}
