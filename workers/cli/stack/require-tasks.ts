import type { Config } from '../../../infra/settings/config.ts';
import { requireUnforgeable } from '../../../infra/tasks/forgeable.ts';
import { lackingAmong, requireNetworks } from '../../../infra/tasks/lacking-network.ts';
import { createQuarantine, type Quarantine } from '../../../infra/tasks/quarantine.ts';
import { lookAtRunTasks } from '../../../infra/tasks/run-tasks.ts';
import { chooseSweepTasks } from '../../../infra/tasks/sweep-tasks.ts';
import type { Tasks } from '../../../infra/tasks/tasks.ts';
import { configuredTarget } from '../../../infra/temporal/connection.ts';
import type { NetworkMode } from '../../../workflows/contracts/network.ts';
import type { RunRequest } from '../../../workflows/contracts/run.ts';
import { type SweepRequest, sweepInput } from '../../../workflows/contracts/sweep.ts';
import { asUsageError } from '../text/errors.ts';
import { setName } from './set-name.ts';
import type { StackClient } from './stack-client.ts';
import { isElsewhere } from './task-set.ts';
import { openTaskSource } from './task-source.ts';

/** Returns what the stack allows to tasks; null if only its workers know, because it runs elsewhere. */
export const allowedNetwork = ({ env, network }: Pick<Config, 'env' | 'network'>): NetworkMode | null =>
  configuredTarget(env) === undefined || env.TEMPER_NETWORK !== undefined ? network : null;

/**
 * Throws a UsageError if the set of a run has tasks whose agent could write its own reward, or tasks that lack a network and are
 * not left out.
 */
export const requireRunTasks = (
  { tasks: set, leaveOut, settings }: RunRequest,
  stack: StackClient,
  signal: AbortSignal,
): Promise<void> =>
  withSet(set, stack, async (named, { name, tasks, quarantine, cap }) => {
    const skipped = new Set((await quarantine.byAddress()).keys());
    const given = { cap: cap ?? 'public', offlineTests: settings?.offlineTests, skipped };
    const found = await lookAtRunTasks(tasks, named, given, signal);
    requireUnforgeable(name, found);
    if (leaveOut === undefined) requireNetworks(name, found);
  });

/** Throws a UsageError if a sweep has tasks that lack a network, unless it leaves them out. */
export const requireSweepTasks = (request: SweepRequest, stack: StackClient, signal: AbortSignal): Promise<void> =>
  withSet(request.tasks, stack, async (named, { name, tasks, quarantine, cap }) => {
    const { leaveOut, settings, ...input } = sweepInput.parse(request);
    if (cap === null || leaveOut !== undefined) return;
    const { addresses } = await chooseSweepTasks({ tasks, quarantine }, input);
    const given = { cap, offlineTests: settings.offlineTests };
    requireNetworks(name, await lackingAmong(tasks, { set: named, addresses }, given, signal));
  });

interface ReadableSet {
  /** The name under which the user knows it. */
  readonly name: string;
  readonly tasks: Tasks;
  readonly quarantine: Quarantine;
  readonly cap: NetworkMode | null;
}

/** Looks at a set that this process can read. At another one its workers look. */
async function withSet(
  set: string | undefined,
  { config, store, shared }: StackClient,
  look: (set: string, readable: ReadableSet) => Promise<void>,
): Promise<void> {
  if (set === undefined || (await isElsewhere(set, config))) return;
  const { tasks } = await openTaskSource(set, { config, store, offline: false });
  try {
    await look(set, {
      name: await setName({ shared }, set),
      tasks,
      quarantine: createQuarantine(shared.common),
      cap: allowedNetwork(config),
    });
  } catch (error) {
    throw asUsageError(error, '--tasks');
  }
}
