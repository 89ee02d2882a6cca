import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  CancellationScope,
  CancelledFailure,
  isCancellation,
  log,
  ParentClosePolicy,
  startChild,
} from '@temporalio/workflow';
import { control, inWorkflowTask } from '../activities.ts';
import { attemptOf, type SweepAttempt, toSweepRow } from '../algorithms/sweep-row.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { sweepRolloutId } from '../contracts/ids.ts';
import type { PolicyRef } from '../contracts/policy.ts';
import { sweepPriority } from '../contracts/queues.ts';
import { searchAttributes, shownText } from '../contracts/search-attributes.ts';
import { attemptSeed } from '../contracts/seeds.ts';
import { sharedPriority } from '../contracts/share.ts';
import type { SweepInput, SweepRow } from '../contracts/sweep.ts';
import type { rollout } from '../rollout.ts';
import { cancelByName, cancelUntilEnded } from '../shared/cancel-again.ts';
import type { NumberedAttempt, SweepTally } from './tally.ts';

/** The number of addresses that fit into one value of history, whatever their length. */
const addressesPerPage = 16;
/** The number of pages that are kept, enough for the attempts that start together. */
const pagesKept = 64;
/** The number of rollouts that fit into one value of history. */
const askedAtOnce = 400;

/** The rollouts of a sweep. */
export interface SweepRollouts {
  /** Starts attempts. Those that can't be started are taken again later, and pause the sweep. */
  start(attempts: readonly NumberedAttempt[]): Promise<void>;
  /** Asks for the ends of rollouts that an earlier execution started. */
  collectAdopted(): Promise<void>;
  /**
   * Waits for the rollouts in flight, which were cancelled with the sweep. Those of an earlier execution are no longer its
   * children: they are cancelled by name, and asked for.
   */
  untilCancelled(): Promise<void>;
}

/** Creates the rollouts of a sweep. */
export function createSweepRollouts(
  { sweep, sweepKey }: { readonly sweep: string; readonly sweepKey: string },
  input: SweepInput,
  tally: SweepTally,
): SweepRollouts {
  const addressOf = createAddresses(tally);
  const { settleWithoutResult, collectAdopted } = createSettling({ sweep, sweepKey }, tally);
  const idOf = (attempt: SweepAttempt): string => sweepRolloutId(sweep, sweepKey, attempt);
  const idsOf = (numbers: Iterable<number>): string[] =>
    Array.from(numbers, (number) => idOf(attemptOf(number, tally.inFlight.get(number) ?? 0, tally.tasks)));

  async function startOne([number, retry]: NumberedAttempt): Promise<void> {
    const attempt = attemptOf(number, retry, tally.tasks);
    const workflowId = idOf(attempt);
    const address = await addressOf(attempt.task);
    const { policyVersion } = tally.pin;
    const { policy } = tally.plan;
    const started = { sweep, sweepKey, input, policy, policyVersion, attempt, workflowId, address };
    const handle = await startRollout(started).catch((error) => {
      // It exists since the sweep was reset.
      if (error instanceof WorkflowExecutionAlreadyStartedError) return null;
      throw error;
    });
    if (handle === null) return tally.adopt(number);
    void handle.result().then(
      (result) => tally.settle(number, toSweepRow(attempt, result)),
      () => settleWithoutResult([number, retry]),
    );
  }

  return {
    async start(attempts) {
      const starts = await Promise.allSettled(attempts.map(startOne));
      for (const [position, start] of starts.entries()) {
        const attempt = attempts[position];
        if (start.status === 'fulfilled' || attempt === undefined) continue;
        tally.notStarted(attempt);
        if (isCancellation(start.reason)) continue; // The sweep is cancelled, which is handled below.
        tally.pausedBecause ??= `a rollout could not be started: ${rootMessage(start.reason)}; fix the cause, then resume`;
      }
      if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('the sweep is cancelled');
    },
    collectAdopted,
    async untilCancelled() {
      await cancelByName(idsOf(tally.adopted));
      const look = () => collectAdopted().then(() => false);
      await cancelUntilEnded(() => idsOf(tally.inFlight.keys()), { isDue: () => false, look });
    },
  };
}

/** Creates what reads the ends of rollouts that do not report here from their records. */
function createSettling(of: { readonly sweep: string; readonly sweepKey: string }, tally: SweepTally) {
  const asked = (rollouts: readonly NumberedAttempt[]) => ({
    ...of,
    tasks: tally.tasks,
    list: tally.plan.list.digest,
    rollouts,
  });
  const settle = (rows: readonly SweepRow[]): void => {
    for (const row of rows) tally.settle(row.attempt * tally.tasks + row.task, row);
  };

  /** Takes the row of a rollout that failed, was cancelled or was terminated from its record, which is written if it has none. */
  async function settleWithoutResult(attempt: NumberedAttempt): Promise<void> {
    try {
      const ask = () => inWorkflowTask.endedRollouts(asked([attempt]));
      settle((await CancellationScope.nonCancellable(ask)).rows);
    } catch (error) {
      log.warn('the record of a rollout could not be read; the sweep tries again later', { error: rootMessage(error) });
    }
    const [number, retry] = attempt;
    if (tally.inFlight.get(number) === retry) tally.adopt(number);
  }

  async function collect(numbers: readonly number[]): Promise<void> {
    for (let more = true; more; ) {
      const rollouts = numbers
        .filter((number) => tally.adopted.has(number))
        .map((number) => [number, tally.inFlight.get(number) ?? 0] as const);
      if (rollouts.length === 0) return;
      const ended = await control.endedRollouts(asked(rollouts)).catch((error) => {
        if (isCancellation(error)) throw error;
        log.warn('the rollouts in flight could not be checked; the sweep tries again later', {
          error: rootMessage(error),
        });
        return { rows: [], more: false };
      });
      settle(ended.rows);
      more = ended.more;
    }
  }

  async function collectAdopted(): Promise<void> {
    const numbers = [...tally.adopted];
    for (let from = 0; from < numbers.length; from += askedAtOnce)
      await collect(numbers.slice(from, from + askedAtOnce));
  }

  return { settleWithoutResult, collectAdopted };
}

interface RolloutToStart {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly input: SweepInput;
  readonly policy: PolicyRef | undefined;
  readonly policyVersion: number | null;
  readonly attempt: SweepAttempt;
  readonly workflowId: string;
  readonly address: string;
}

function startRollout({ sweep, sweepKey, input, policy, policyVersion, attempt, workflowId, address }: RolloutToStart) {
  const { settings, upstream, reuseVerdicts } = input;
  const retry = attempt.retry === 0 ? '' : `, retry ${attempt.retry}`;
  return startChild<typeof rollout>('rollout', {
    workflowId,
    args: [
      {
        task: address,
        ...settings,
        purpose: 'evaluation',
        ...(policy !== undefined && { policy }),
        ...(policyVersion !== null && { policyVersion }),
        ...(upstream !== undefined && { upstream }),
        ...(reuseVerdicts && { reuseVerdicts }),
        seed: attemptSeed(input.seed, attempt),
      },
    ],
    // It outlives the sweep's continue-as-new, which closes this execution; if the sweep is terminated, the reaper cancels it.
    parentClosePolicy: ParentClosePolicy.ABANDON,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    priority: { priorityKey: sweepPriority, ...sharedPriority(sweepKey, input.weight) },
    typedSearchAttributes: [
      { key: searchAttributes.run, value: sweep },
      shownText(searchAttributes.task, address),
      shownText(searchAttributes.agent, settings.agent),
      ...(policyVersion === null ? [] : [{ key: searchAttributes.policyVersion, value: policyVersion }]),
    ],
    staticSummary: `${settings.agent} at ${address}, attempt ${attempt.attempt + 1}${retry}`,
  });
}

/** Reads the addresses of the tasks page by page, because history can't hold long lists. */
function createAddresses(tally: SweepTally): (task: number) => Promise<string> {
  const pages = new Map<number, ReturnType<typeof control.readAddresses>>();
  return async (task) => {
    const from = Math.floor(task / addressesPerPage) * addressesPerPage;
    const { digest } = tally.plan.list;
    const page = pages.get(from) ?? control.readAddresses({ list: digest, from, count: addressesPerPage });
    pages.set(from, page);
    if (pages.size > pagesKept) pages.delete(Math.min(...pages.keys()));
    const { addresses } = await page.catch((error) => {
      pages.delete(from);
      throw error;
    });
    const address = addresses[task - from];
    if (address === undefined)
      throw new Error(`expected the address of task ${task}, got ${addresses.length} addresses from ${from}`);
    return address;
  };
}
