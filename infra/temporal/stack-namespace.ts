import { type Client, ScheduleNotFoundError } from '@temporalio/client';
import { controlQueue, earlierControlQueues } from '../../workflows/contracts/queues.ts';
import { retentionSchedule } from '../../workflows/contracts/retention.ts';
import { changeIdentity, identityOf } from '../stack.ts';
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
 * workflows are there: retention would remove what they refer to. A stack of both, once known, stays so. Also refuses a namespace
 * with open workflows of an earlier format, which would wait there for ever.
 *
 * @param mayMove Whether the stack may move to this namespace, for example because its server was replaced.
 */
export async function requireNamespace(
  { stack, objects, client }: StackInNamespace,
  { mayMove }: { readonly mayMove: boolean },
): Promise<void> {
  await refuseOwner({ stack, objects, client });
  await refuseEarlierWorkflows(client);
  const id = await idOf(client);
  await changeIdentity(objects, (found) => {
    if (found === null) throw new Error(`${objects.location} lost its stack.json; restore it from a backup`);
    if (found.namespace === undefined || mayMove) return { ...found, namespace: id };
    if (found.namespace === id) return found;
    throw otherNamespace({ stack, objects, client }, { known: found.namespace, id });
  });
}

/**
 * Refuses the server of another stack, for a command that reads or changes workflows together with the store: a wrong address, or
 * another stack on the default port while this one is down. Changes nothing. A store that no process has opened belongs to none yet.
 */
export async function refuseOtherStack({ objects, client }: Omit<StackInNamespace, 'stack'>): Promise<void> {
  const found = await identityOf(objects);
  if (found === null) return;
  const stack = { stack: found.id, objects, client };
  await refuseOwner(stack);
  if (found.namespace === undefined) return;
  const id = await idOf(client);
  if (found.namespace !== id) throw otherNamespace(stack, { known: found.namespace, id });
}

async function refuseOwner({ stack, objects, client }: StackInNamespace): Promise<void> {
  const owner = await ownerOf(client);
  if (owner === null || owner === stack) return;
  throw new Error(
    `the Temporal namespace ${client.options.namespace} belongs to stack ${owner}, and the store ${objects.location} to stack ${stack}; ` +
      'give each stack a namespace of its own in TEMPORAL_NAMESPACE, or correct TEMPER_STORE or the home. If the other stack is gone, run ' +
      `\`temporal schedule delete --schedule-id ${retentionSchedule}\` in that namespace`,
  );
}

/** Refuses open workflows on the task queues of earlier formats, from which no worker takes work. */
async function refuseEarlierWorkflows({ options: { namespace }, workflow }: Client): Promise<void> {
  const queues = earlierControlQueues.map((queue) => `"${queue}"`).join(', ');
  const query = `TaskQueue IN (${queues}) AND ExecutionStatus = "Running"`;
  const { count } = await workflow.count(query);
  if (count === 0) return;
  const { value: first } = await workflow.list({ query, pageSize: 1 })[Symbol.asyncIterator]().next();
  throw new Error(
    `the Temporal namespace ${namespace} has ${count} open workflows on the task queue ${first?.taskQueue}, such as ` +
      `${first?.workflowId}: another version of temper began them, and this one works on ${controlQueue} alone. Let that version ` +
      'end them, name another namespace in TEMPORAL_NAMESPACE, or end them with ' +
      `\`temporal workflow terminate --namespace ${namespace} --reason format --query '${query}'\``,
  );
}

const otherNamespace = (
  { stack, objects, client }: StackInNamespace,
  { known, id }: { readonly known: string; readonly id: string },
): Error =>
  new Error(
    `stack ${stack} in ${objects.location} belongs to the Temporal namespace with the id ${known}, and ` +
      `${client.options.namespace} has the id ${id}; correct TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, or run ` +
      '`temper doctor --register` once if the stack has moved to this namespace',
  );

async function idOf({ options: { namespace }, workflowService }: Client): Promise<string> {
  const { namespaceInfo } = await workflowService.describeNamespace({ namespace });
  return namespaceInfo?.id ?? '';
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
