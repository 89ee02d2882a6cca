import type { Config } from '../../../infra/settings/config.ts';
import {
  type GivenNetwork,
  type Lacking,
  lackingAmong,
  lackingInSet,
  requireNetworks,
} from '../../../infra/tasks/lacking-network.ts';
import { createQuarantine, type Quarantine } from '../../../infra/tasks/quarantine.ts';
import { chooseSweepTasks } from '../../../infra/tasks/sweep-tasks.ts';
import type { Tasks } from '../../../infra/tasks/tasks.ts';
import { configuredTarget } from '../../../infra/temporal/connection.ts';
import type { NetworkMode } from '../../../workflows/contracts/network.ts';
import { type RunRequest, runInput } from '../../../workflows/contracts/run.ts';
import { type SweepRequest, sweepInput } from '../../../workflows/contracts/sweep.ts';
import { asUsageError } from '../text/errors.ts';
import type { StackClient } from './stack-client.ts';
import { isElsewhere } from './task-set.ts';
import { openTaskSource } from './task-source.ts';

/** Returns what the stack allows to tasks; null if only its workers know, because it runs elsewhere. */
export const allowedNetwork = ({ env, network }: Pick<Config, 'env' | 'network'>): NetworkMode | null =>
  configuredTarget(env) === undefined || env.TEMPER_NETWORK !== undefined ? network : null;

/** Throws a UsageError if the set of a run has tasks that lack a network, unless the run leaves them out. */
export const requireRunNetworks = (request: RunRequest, stack: StackClient, signal: AbortSignal): Promise<void> =>
  refuse(stack, request, async (tasks, quarantine, given) => {
    const skipped = new Set((await quarantine.byAddress()).keys());
    return lackingInSet(tasks, runInput.parse(request).tasks, { ...given, skipped }, signal);
  });

/** Throws a UsageError if a sweep has tasks that lack a network, unless it leaves them out. */
export const requireSweepNetworks = (request: SweepRequest, stack: StackClient, signal: AbortSignal): Promise<void> =>
  refuse(stack, request, async (tasks, quarantine, given) => {
    const input = sweepInput.parse(request);
    const { addresses } = await chooseSweepTasks({ tasks, quarantine }, input);
    return lackingAmong(tasks, { set: input.tasks, addresses }, given, signal);
  });

/** Looks for tasks that lack a network, if this process can read them and knows what the stack allows. Otherwise its workers look. */
async function refuse(
  { config, store, shared }: StackClient,
  { tasks: set, leaveOut, settings }: Pick<RunRequest, 'tasks' | 'leaveOut' | 'settings'>,
  look: (tasks: Tasks, quarantine: Quarantine, given: GivenNetwork) => Promise<Lacking>,
): Promise<void> {
  const cap = allowedNetwork(config);
  if (cap === null || set === undefined || leaveOut === true || (await isElsewhere(set, config))) return;
  const { tasks } = await openTaskSource(set, { config, store, offline: false });
  const given = { cap, offlineTests: settings?.offlineTests };
  try {
    requireNetworks(set, await look(tasks, createQuarantine(shared.common), given));
  } catch (error) {
    throw asUsageError(error, '--tasks');
  }
}
