import { indexById } from '../../../../infra/tasks/find-task.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { TaskAddress } from '../../../../workflows/contracts/task.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { openTaskSource } from '../../stack/task-source.ts';
import { UsageError } from '../../text/errors.ts';
import { note } from '../../text/output.ts';

/**
 * Packs the tasks that somebody names into the store, and says where the list of them is: their addresses by their ids. What
 * changes in the directory after that changes nothing of the regrade.
 */
export async function packRepaired(named: string, { config, store }: StackClient): Promise<string> {
  const { tasks, address } = await openTaskSource(named, { config, store, offline: false });
  const packed = await indexById(
    named,
    tasks.scan(address),
    async ({ pack }): Promise<TaskAddress> => `blob:${(await pack()).bundle.digest}`,
  ).catch((error: unknown) => {
    throw error instanceof TemperFailure ? new UsageError(`--tasks: ${error.message}`, { cause: error }) : error;
  });
  note(`${packed.size} tasks of ${named} packed`);
  return `blob:${(await store.putJson(Object.fromEntries(packed))).digest}`;
}
