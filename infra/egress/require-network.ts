import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exceeds, type NetworkMode } from '../../workflows/contracts/network.ts';
import type { Task } from '../../workflows/contracts/task.ts';

/** Throws UnsupportedTask for a task that asks for more network than the operator allows. */
export function requireNetwork({ id, network }: Pick<Task, 'id' | 'network'>, cap: NetworkMode): void {
  if (network === undefined || !exceeds(network.mode, cap)) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `task ${id}: expected the network ${cap} or less, which TEMPER_NETWORK allows, got ${network.mode}; set TEMPER_NETWORK=${network.mode} for the control worker and the hosts, or leave the task out`,
  );
}
