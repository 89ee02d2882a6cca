import { createHash } from 'node:crypto';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { graderVersion } from '../../../../infra/grading/version.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { disagreeing, type FlakyEvidence } from '../../../../infra/tasks/quarantine.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { Task } from '../../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import type { rollout } from '../../../../workflows/index.ts';
import { followRollout, startRollout } from '../rollout/one-rollout.ts';
import type { RolloutRow } from '../rollout/row.ts';
import { eachAtOnce } from './each-at-once.ts';

/** What is known of a task after its validation. */
export interface Validation {
  readonly task: string;
  readonly address: string;
  /** The address under which it is in the store; null when it could not be read. */
  readonly packed: string | null;
  readonly valid: boolean;
  /** Why it is not; null when it is. */
  readonly why: string | null;
  readonly oracle: readonly RolloutRow[];
  readonly nop: readonly RolloutRow[];
  /** Evaluations of the same diff that disagree: its tests are flaky. */
  readonly flaky: readonly FlakyEvidence[];
}

export interface ValidationOptions {
  readonly sandbox: 'auto' | 'docker' | 'local';
  /** So many tasks at once. */
  readonly concurrency: number;
  /** Rollouts of each agent: tests that can't make up their mind are found by asking again. */
  readonly repeat: number;
  /** Does all again, instead of taking the scores of an earlier validation. */
  readonly again: boolean;
  finish(validation: Validation): void;
}

/**
 * Is every task of a set solved by its reference solution, and by nothing less? Rollouts of `oracle` have to score 1,
 * those of `nop` 0. Tasks are read one after the other, so a set may have any number. An abort cancels what is in flight.
 */
export async function validateTasks(
  client: Client,
  tasks: AsyncIterable<FoundTask>,
  options: ValidationOptions,
  signal: AbortSignal,
): Promise<void> {
  const each = async (found: FoundTask, ending: AbortSignal): Promise<void> => {
    const validation = await validateTask(client, found, options, ending);
    if (!ending.aborted) options.finish(validation);
  };
  await eachAtOnce(tasks, options.concurrency, each, signal);
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
    const roll = async (agent: ValidationAgent): Promise<readonly RolloutRow[]> => {
      const rows: RolloutRow[] = [];
      for (let round = 1; round <= options.repeat && !signal.aborted; round += 1) {
        rows.push(await scoreOf(client, task, agent, { ...options, round }, signal));
      }
      return rows;
    };
    const [oracle, nop] = await Promise.all([roll('oracle'), roll('nop')]);
    const why = complaint(oracle, nop);
    const packed = `blob:${task.bundle.digest}`;
    const flaky = disagreeing([...oracle, ...nop].flatMap(evidenceOf));
    return { task: id, address, packed, valid: why === null, why, oracle, nop, flaky };
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    const why = `${error.type}: ${error.message}`;
    return { task: id, address, packed: null, valid: false, why, oracle: [], nop: [], flaky: [] };
  }
}

function evidenceOf({ rollout, outcome, reward, verdict, diff, log }: RolloutRow): FlakyEvidence[] {
  return rollout === null || diff === null || outcome !== 'scored' ? [] : [{ rollout, reward, verdict, diff, log }];
}

type ValidationAgent = 'oracle' | 'nop';

/** Why a task with these rollouts is not valid; null when it is. */
export function complaint(oracle: readonly RolloutRow[], nop: readonly RolloutRow[]): string | null {
  return unlike('the reference solution', oracle, 1) ?? unlike('doing nothing', nop, 0);
}

function unlike(who: string, rows: readonly RolloutRow[], wanted: number): string | null {
  const bad = rows.find(({ reward }) => reward !== wanted);
  if (bad === undefined) return null;
  const right = rows.filter(({ reward }) => reward === wanted).length;
  // What the infrastructure came to says nothing of the tests.
  const disagrees = rows.some(({ outcome, reward }) => outcome === 'scored' && reward !== wanted);
  const flaky =
    right === 0 || !disagrees ? '' : `; ${right} of its ${rows.length} rollouts score ${wanted}: the tests are flaky`;
  return `${who}: ${saidOf(bad)}${flaky}`;
}

function saidOf({ outcome, reward, failure, verdict }: RolloutRow): string {
  if (failure !== null) return `${failure.type}: ${failure.message}`;
  return reward === null ? (outcome ?? 'no outcome') : `reward ${reward}, ${verdict ?? 'no verdict'}`;
}

/** Of all that decides on a rollout's score: what another grader has scored is scored anew. */
export function validationKey(
  { bundle, image }: Pick<Task, 'bundle' | 'image'>,
  sandbox: ValidationOptions['sandbox'],
  grader = graderVersion,
): string {
  const parts = [bundle.digest, image, sandbox, grader];
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12);
}

/**
 * One rollout, by an id that the same task in the same kind of sandbox always has with the same grader: a validation that was
 * interrupted goes on with what runs, and takes what was scored. What ended otherwise (a missing image, a lost host) is done
 * again.
 */
async function scoreOf(
  client: Client,
  task: Task,
  agent: ValidationAgent,
  { sandbox, again, round }: ValidationOptions & { readonly round: number },
  signal: AbortSignal,
): Promise<RolloutRow> {
  const workflowId = `validate/${task.id}/${agent}/${validationKey(task, sandbox)}/${round}`;
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
