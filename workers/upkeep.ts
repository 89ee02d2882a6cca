import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { createDiskGuard } from '../activities/control/disk-guard.ts';
import { createRetentionActivities } from '../activities/control/retention.ts';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import { readLevels } from '../infra/machine/read-levels.ts';
import type { Config } from '../infra/settings/config.ts';
import type { HostNotes } from '../infra/store/host-notes.ts';
import { pollingMachines } from '../infra/temporal/pollers.ts';
import { namespaceMemo, requireNamespace, type StackInNamespace } from '../infra/temporal/stack-namespace.ts';
import { controlQueue } from '../workflows/contracts/queues.ts';
import { retentionSchedule } from '../workflows/contracts/retention.ts';
import { makeRetentionPass } from './retention.ts';
import { ensureSchedule } from './schedules.ts';

/** The longest duration of a pass of retention, which the next one continues. */
const retentionLimitMs = 10 * 60_000;
const retentionEveryMs = 3_600_000;

interface UpkeepContext {
  readonly notes: HostNotes;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Creates the activities by which a stack looks after its disk. */
export function createUpkeep(
  config: Config,
  client: Client,
  { notes, log }: UpkeepContext,
): Pick<ControlActivities, 'guardDisk' | 'collectGarbage'> {
  const directories = [config.home, config.checkpoints];
  return {
    ...createDiskGuard({
      client,
      machine: hostname(),
      controlMachines: () => pollingMachines(client, controlQueue, 'activity'),
      readDisks: () => readLevels({ directories }).filter(({ resource }) => resource === 'disk'),
      setNote: createDiskNote(config.host, { notes, log }),
    }),
    ...createRetentionActivities({
      collect: (signal) =>
        makeRetentionPass(config, {
          dryRun: false,
          olderThanMs: null,
          limitMs: retentionLimitMs,
          connect: async () => client,
          signal,
          note: (text) => log.info(text),
        }),
    }),
  };
}

/**
 * Takes the namespace for the stack by its schedule of retention, whose memo says whose the namespace is. Repeatable. Refuses the
 * namespace of another stack, also of one that takes it at the same moment.
 */
export async function takeNamespace(
  state: StackInNamespace,
  options: Parameters<typeof requireNamespace>[1],
): Promise<void> {
  const { client, stack } = state;
  await requireNamespace(state, options);
  await ensureSchedule(client, {
    scheduleId: retentionSchedule,
    everyMs: retentionEveryMs,
    workflowType: 'retention',
    args: [],
    summary: 'removes what nothing needs any more',
    memo: namespaceMemo(stack),
  });
  await requireNamespace(state, options);
}

/** Writes the note of the disk for `temper status`, once when it begins to hold and once when it ends. */
function createDiskNote(host: string, { notes, log }: UpkeepContext): (text: string | null) => Promise<void> {
  let isSet: boolean | null = null;
  return async (text) => {
    if (isSet === (text !== null)) return;
    try {
      await notes.set(host, 'disk', text);
      isSet = text !== null;
    } catch (error) {
      // The disk may be too full for it by now.
      log.warn({ error }, 'could not write the note about the disk');
    }
  };
}
