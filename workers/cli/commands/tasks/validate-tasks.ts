import { createHash } from 'node:crypto';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { graderVersion } from '../../../../infra/grading/version.ts';
import { packedAddress } from '../../../../infra/tasks/address.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { forEachConcurrently } from '../../../../infra/tasks/for-each-concurrently.ts';
import { disagreeing, type FlakyEvidence } from '../../../../infra/tasks/quarantine.ts';
import { areEqual } from '../../../../workflows/algorithms/rounding.ts';
import { rewardForGivingUp } from '../../../../workflows/algorithms/task-step.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { type Trick, trickDescriptions } from '../../../../workflows/contracts/flags.ts';
import type { SandboxChoice } from '../../../../workflows/contracts/sandbox-kinds.ts';
import type { Task } from '../../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import type { rollout } from '../../../../workflows/index.ts';
import type { RolloutRow } from '../rollout/rollout-row.ts';
import { followRollout, startRollout } from '../rollout/run-rollouts.ts';

/** The result of validating one task. */
export interface Validation {
  readonly task: string;
  readonly address: string;
  /** Address of the packed task in the store; null if the task could not be read. */
  readonly packed: string | null;
  /** The image that the task names; null if the task could not be read. */
  readonly image: string | null;
  readonly valid: boolean;
  /** The reason why the task is invalid; null if it is valid. */
  readonly why: string | null;
  /** The reward that the task gives an agent that gives up, in words; null without. A task with such a reward is valid. */
  readonly givingUp: string | null;
  readonly oracle: readonly RolloutRow[];
  readonly nop: readonly RolloutRow[];
  /** Evaluations of the same diff that disagree, which shows that the tests are flaky. */
  readonly flaky: readonly FlakyEvidence[];
}

export interface ValidationOptions {
  readonly sandbox: SandboxChoice;
  /** Tasks that are validated at once. */
  readonly concurrency: number;
  /** Rollouts of each agent; repeated evaluations reveal flaky tests. */
  readonly repeat: number;
  /** Whether to repeat all rollouts instead of reusing the scores of an earlier validation. */
  readonly again: boolean;
  /** Whether all tests run without a network. */
  readonly offlineTests?: true | undefined;
  finish(validation: Validation): void;
}

/**
 * Validates each task of a set: rollouts of `oracle`, which applies the reference solution, must score 1, and rollouts
 * of `nop`, which does nothing, must score 0. A reference solution whose tests were all skipped says nothing. Tasks are read one by one, so that a set may have any size. An abort
 * cancels the rollouts in flight.
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
  await forEachConcurrently(tasks, options.concurrency, each, signal);
}

async function validateTask(
  client: Client,
  found: FoundTask,
  options: ValidationOptions,
  signal: AbortSignal,
): Promise<Validation> {
  const { id, address } = found;
  const { sandbox, again, offlineTests } = options;
  try {
    const task = await found.pack();
    const runAll = async (agent: ValidationAgent): Promise<readonly RolloutRow[]> => {
      const rows: RolloutRow[] = [];
      for (let round = 1; round <= options.repeat && !signal.aborted; round += 1) {
        rows.push(await scoreOf(client, task, { agent, sandbox, again, offlineTests, round }, signal));
      }
      return rows;
    };
    const [oracle, nop] = await Promise.all([runAll('oracle'), runAll('nop')]);
    const why = whyInvalid(oracle, nop);
    const packed = packedAddress(task.bundle.digest, id);
    const flaky = disagreeing([...oracle, ...nop].flatMap(evidenceOf));
    const givingUp = rewardForGivingUp(task);
    return { task: id, address, packed, image: task.image, valid: why === null, why, givingUp, oracle, nop, flaky };
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    const why = `${error.type}: ${error.message}`;
    const unread = { packed: null, image: null, givingUp: null, oracle: [], nop: [], flaky: [] };
    return { task: id, address, valid: false, why, ...unread };
  }
}

function evidenceOf({ rollout, outcome, reward, verdict, diff, log }: RolloutRow): FlakyEvidence[] {
  return rollout === null || diff === null || outcome !== 'scored' ? [] : [{ rollout, reward, verdict, diff, log }];
}

type ValidationAgent = 'oracle' | 'nop';

/** One of the rollouts of a validation. */
interface Scored extends Pick<ValidationOptions, 'sandbox' | 'again' | 'offlineTests'> {
  readonly agent: ValidationAgent;
  /** Number of the rollout among those of its agent, from 1. */
  readonly round: number;
}

/** Returns why a task with these rollouts is invalid; null if it is valid. */
export function whyInvalid(oracle: readonly RolloutRow[], nop: readonly RolloutRow[]): string | null {
  return whyNot('the reference solution', oracle, 1) ?? whyNot('doing nothing', nop, 0) ?? whyDoubtful(oracle);
}

/** The flags by which a full reward of the reference solution says nothing about the tests. */
const doubtful: readonly Trick[] = ['untouched', 'skipped-tests', 'crash'];

function whyDoubtful(oracle: readonly RolloutRow[]): string | null {
  const flag = oracle.flatMap(({ flags }) => flags).find((trick) => doubtful.includes(trick));
  return flag === undefined ? null : `the reference solution: flagged as ${flag}. ${trickDescriptions[flag]}`;
}

function whyNot(what: string, rows: readonly RolloutRow[], wanted: number): string | null {
  const isWanted = ({ reward }: RolloutRow): boolean => reward !== null && areEqual([reward, wanted]);
  const bad = rows.find((row) => !isWanted(row));
  if (bad === undefined) return null;
  const right = rows.filter(isWanted).length;
  // A failure of the infrastructure says nothing about the tests.
  const disagrees = rows.some((row) => row.outcome === 'scored' && !isWanted(row));
  const flaky =
    right === 0 || !disagrees ? '' : `; ${right} of its ${rows.length} rollouts score ${wanted}: the tests are flaky`;
  return `${what}: ${endOf(bad)}${flaky}`;
}

function endOf({ outcome, reward, failure, verdict }: RolloutRow): string {
  if (failure !== null) return `${failure.type}: ${failure.message}`;
  return reward === null ? (outcome ?? 'no outcome') : `reward ${reward}, ${verdict ?? 'no verdict'}`;
}

/** Identifies everything that decides on a rollout's score, so that a score is reused only where it still holds. */
export function validationKey(
  { bundle, image }: Pick<Task, 'bundle' | 'image'>,
  { sandbox, offlineTests }: Pick<ValidationOptions, 'sandbox' | 'offlineTests'>,
  grader = graderVersion,
): string {
  const parts = [bundle.digest, image, sandbox, grader, ...(offlineTests ? ['offline'] : [])];
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12);
}

/**
 * Scores one rollout. Its id is the same for the same task, kind of sandbox and grader, so that a validation that was
 * interrupted follows the rollouts that still run and reuses the scored ones. Rollouts that ended without a score (a
 * missing image, a lost host) are repeated.
 */
async function scoreOf(
  client: Client,
  task: Task,
  { agent, sandbox, again, offlineTests, round }: Scored,
  signal: AbortSignal,
): Promise<RolloutRow> {
  const workflowId = `validate/${task.id}/${agent}/${validationKey(task, { sandbox, offlineTests })}/${round}`;
  const known = { task: task.id, agent };
  const handle = client.workflow.getHandle<typeof rollout>(workflowId);
  const state = await handle.describe().then(({ status }) => status.name, nullIfUnknown);
  if (state === 'RUNNING' || (state === 'COMPLETED' && !again)) {
    const row = await followRollout(handle, known, signal);
    if (row.outcome === 'scored') return row;
  }
  const resolved = { task, usesModel: false, branches: trainAllBranches };
  const request = { agent, sandbox, offlineTests, purpose: 'evaluation' as const };
  return followRollout(await startRollout(client, workflowId, resolved, request), known, signal);
}

function nullIfUnknown(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}
