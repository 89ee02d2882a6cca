import { type Client, ScheduleNotFoundError } from '@temporalio/client';
import { retentionSchedule } from '../../workflows/contracts/retention.ts';
import { changeIdentity } from '../stack.ts';
import type { Objects } from '../store/objects.ts';
import type { StorePlace } from '../store/shared-state.ts';

/** A stack, its store and the client of its namespace. */
export interface StackInNamespace {
  readonly stack: string;
  readonly objects: Objects;
  readonly client: Client;
}

/** The memo of a stack's schedule of retention, which says whose namespace it is. */
export const namespaceMemo = (stack: string): { readonly stack: string } => ({ stack });

/**
 * Refuses a namespace of another stack, whose workers would take this one's work, and a stack of another namespace, whose
 * workflows are there: retention would remove what they refer to. A stack of both, once known, stays so.
 *
 * @param mayMove Whether the stack may move to this namespace, for example because its server was replaced.
 */
export async function requireNamespace(
  { stack, objects, client }: StackInNamespace,
  { mayMove }: { readonly mayMove: boolean },
): Promise<void> {
  const { namespace } = client.options;
  const owner = await ownerOf(client);
  if (owner !== null && owner !== stack) {
    throw new Error(
      `the Temporal namespace ${namespace} belongs to stack ${owner}, and the store ${objects.location} to stack ${stack}; ` +
        'give each stack a namespace of its own in TEMPORAL_NAMESPACE, or correct TEMPER_STORE. If the other stack is gone, run ' +
        `\`temporal schedule delete --schedule-id ${retentionSchedule}\` in that namespace`,
    );
  }
  const { namespaceInfo } = await client.workflowService.describeNamespace({ namespace });
  const id = namespaceInfo?.id ?? '';
  await changeIdentity(objects, (found) => {
    if (found === null) throw new Error(`${objects.location} lost its stack.json; restore it from a backup`);
    if (found.namespace === undefined || mayMove) return { ...found, namespace: id };
    if (found.namespace === id) return found;
    throw new Error(
      `stack ${stack} in ${objects.location} belongs to the Temporal namespace with the id ${found.namespace}, and ` +
        `${namespace} has the id ${id}; correct TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, or run ` +
        '`temper doctor --register` once if the stack has moved to this namespace',
    );
  });
}

/** Whether a stack follows whatever server it finds: on a laptop, the home's own, whose database may be a new one. */
export const followsServer = ({ kind }: StorePlace): boolean => kind === 'directory';

async function ownerOf(client: Client): Promise<string | null> {
  try {
    const { memo } = await client.schedule.getHandle(retentionSchedule).describe();
    return typeof memo?.stack === 'string' ? memo.stack : null;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return null;
    throw error;
  }
}
