import { createHash } from 'node:crypto';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { FoundTask } from '../../../infra/tasks/find-task.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../workflows/contracts/trace.ts';
import type { rollout } from '../../../workflows/index.ts';
import { followRollout, startRollout } from '../rollout/one-rollout.ts';
import type { RolloutRow } from '../rollout/row.ts';

/** What is known of a task after its validation. */
export interface Validation {
  readonly task: string;
  readonly address: string;
  readonly valid: boolean;
  /** Why it is not; null when it is. */
  readonly why: string | null;
  /** Absent when the task could not be read. */
  readonly oracle?: RolloutRow;
  readonly nop?: RolloutRow;
}

export interface ValidationOptions {
  readonly sandbox: 'auto' | 'docker' | 'local';
  /** So many tasks at once; each is two rollouts. */
  readonly concurrency: number;
  /** Does all again, instead of taking the scores of an earlier validation. */
  readonly again: boolean;
  finish(validation: Validation): void;
}

/**
 * Is every task of a set solved by its reference solution, and by nothing less? One rollout of `oracle` has to score 1, one
 * of `nop` 0. The tasks are read one after the other, so a set may have any number. An abort cancels what is in flight.
 */
export async function validateTasks(
  client: Client,
  tasks: AsyncIterable<FoundTask>,
  options: ValidationOptions,
  signal: AbortSignal,
): Promise<void> {
  const queue = tasks[Symbol.asyncIterator]();
  const worker = async (): Promise<void> => {
    while (!signal.aborted) {
      const { value: found, done } = await queue.next();
      if (done) return;
      const validation = await validateTask(client, found, options, signal);
      if (!signal.aborted) options.finish(validation);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
}

async function validateTask(
  client: Client,
  found: FoundTask,
  options: ValidationOptions,
  signal: AbortSignal,
): Promise<Validation> {
  const { id, address } = found;
  try {
    const task = await found.pack();
    const roll = (agent: 'oracle' | 'nop') => scoreOf(client, task, agent, options, signal);
    const [oracle, nop] = await Promise.all([roll('oracle'), roll('nop')]);
    const why = complaint(oracle, nop);
    return { task: id, address, valid: why === null, why, oracle, nop };
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    return { task: id, address, valid: false, why: `${error.type}: ${error.message}` };
  }
}

function complaint(oracle: RolloutRow, nop: RolloutRow): string | null {
  if (oracle.reward !== 1) return `the reference solution: ${saidOf(oracle)}`;
  if (nop.reward !== 0) return `doing nothing: ${saidOf(nop)}`;
  return null;
}

function saidOf({ outcome, reward, failure, verdict }: RolloutRow): string {
  if (failure !== null) return `${failure.type}: ${failure.message}`;
  return reward === null ? (outcome ?? 'no outcome') : `reward ${reward}, ${verdict ?? 'no verdict'}`;
}

/**
 * One rollout, by an id that the same task in the same kind of sandbox always has: a validation that was interrupted goes
 * on with what runs, and takes what was scored. What ended otherwise (a missing image, a lost host) is done again.
 */
async function scoreOf(
  client: Client,
  task: Task,
  agent: 'oracle' | 'nop',
  { sandbox, again }: ValidationOptions,
  signal: AbortSignal,
): Promise<RolloutRow> {
  const key = createHash('sha256').update([task.bundle.digest, task.image, sandbox].join('\n')).digest('hex');
  const workflowId = `validate/${task.id}/${agent}/${key.slice(0, 12)}`;
  const named = { task: task.id, agent };
  const handle = client.workflow.getHandle<typeof rollout>(workflowId);
  const state = await handle.describe().then(({ status }) => status.name, orAbsent);
  if (state === 'RUNNING' || (state === 'COMPLETED' && !again)) {
    const row = await followRollout(handle, named, signal);
    if (row.outcome === 'scored') return row;
  }
  const resolved = { task, usesModel: false, branches: trainAllBranches };
  const request = { agent, sandbox, purpose: 'evaluation' as const };
  return followRollout(await startRollout(client, workflowId, resolved, request), named, signal);
}

function orAbsent(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}
