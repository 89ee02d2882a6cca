import {
  CancellationScope,
  CancelledFailure,
  ChildWorkflowFailure,
  isCancellation,
  log,
  ParentClosePolicy,
  startChild,
  TerminatedFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { control } from '../activities.ts';
import { outcomeWithoutResult } from '../algorithms/rollout-end.ts';
import { placeOf, rowWithoutResult, type SweepPlace, toSweepRow } from '../algorithms/sweep-row.ts';
import { sweepRolloutId } from '../contracts/ids.ts';
import { sweepPriority } from '../contracts/priority.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import type { SweepInput, SweepRow } from '../contracts/sweep.ts';
import type { rollout } from '../rollout.ts';
import { rootMessage } from '../run/root-message.ts';
import type { Numbered, SweepBooks } from './tally.ts';

/** As many as fit into one value of history, whatever their length. */
const addressesPerPage = 16;
/** Enough for all that can be in flight. */
const pagesKept = 64;

/** The rollouts of a sweep: starts them, and hears of their ends. */
export interface SweepRollouts {
  /** What can't be started is taken again later, and pauses the sweep. */
  start(numbers: readonly Numbered[]): Promise<void>;
  /** Asks for the ends of those that an earlier execution started. */
  collectAdopted(): Promise<void>;
}

export function createSweepRollouts(input: SweepInput, books: SweepBooks): SweepRollouts {
  const { workflowId: sweep, firstExecutionRunId: sweepKey } = workflowInfo();
  const addressOf = createAddresses(books);
  const idOf = (place: SweepPlace): string => sweepRolloutId(sweep, sweepKey, place);

  async function startOne([number, retry]: Numbered): Promise<void> {
    const place = placeOf(number, retry, books.tasks);
    const workflowId = idOf(place);
    const address = await addressOf(place.task);
    const { settings, upstream } = input;
    const { policyVersion } = books;
    const pin = { ...(policyVersion !== null && { policyVersion }), ...(upstream !== undefined && { upstream }) };
    const reuse = input.reuseVerdicts ? { reuseVerdicts: true as const } : {};
    const handle = await startChild<typeof rollout>('rollout', {
      workflowId,
      args: [{ task: address, ...settings, purpose: 'evaluation', ...pin, ...reuse }],
      // It outlives the sweep's continue-as-new, which closes this execution; if the sweep is terminated, the reaper cancels it.
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      priority: { priorityKey: sweepPriority },
      typedSearchAttributes: [
        { key: searchAttributes.run, value: sweep },
        { key: searchAttributes.task, value: address },
        { key: searchAttributes.agent, value: settings.agent },
        ...(policyVersion === null ? [] : [{ key: searchAttributes.policyVersion, value: policyVersion }]),
      ],
      staticSummary: `${settings.agent} at ${address}, attempt ${place.attempt + 1}${retry === 0 ? '' : `, retry ${retry}`}`,
    });
    void handle.result().then(
      (result) => books.settle(number, toSweepRow(place, result)),
      (error: unknown) =>
        books.settle(number, rowWithoutResult(place, { taskId: address, workflowId, ...endOf(error) })),
    );
  }

  async function collectAdopted(): Promise<void> {
    for (let more = books.adopted.size > 0; more; ) {
      const rollouts = [...books.adopted].map((number) => [number, books.inFlight.get(number) ?? 0] as const);
      const asked = { sweep, sweepKey, tasks: books.tasks, list: books.plan.list.digest, rollouts };
      const ended = await control.endedRollouts(asked).catch((error) => {
        if (isCancellation(error)) throw error;
        log.warn('the rollouts in flight are asked for again in a while', { error: rootMessage(error) });
        return { rows: [], more: false };
      });
      for (const row of ended.rows) books.settle(row.attempt * books.tasks + row.task, row);
      more = ended.more;
    }
  }

  return {
    async start(numbers) {
      const starts = await Promise.allSettled(numbers.map(startOne));
      for (const [position, start] of starts.entries()) {
        const numbered = numbers[position];
        if (start.status === 'fulfilled' || numbered === undefined) continue;
        books.notStarted(numbered);
        if (isCancellation(start.reason)) continue; // of the sweep: below
        books.pausedBecause ??= `a rollout could not be started: ${rootMessage(start.reason)}; mend the cause, then resume`;
      }
      if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('the sweep is cancelled');
    },
    collectAdopted,
  };
}

/** The addresses of the tasks, read a page at a time: history holds no long lists. */
function createAddresses(books: SweepBooks): (task: number) => Promise<string> {
  const pages = new Map<number, ReturnType<typeof control.readAddresses>>();
  return async (task) => {
    const from = Math.floor(task / addressesPerPage) * addressesPerPage;
    const { digest } = books.plan.list;
    const page = pages.get(from) ?? control.readAddresses({ list: digest, from, count: addressesPerPage });
    pages.set(from, page);
    if (pages.size > pagesKept) pages.delete(Math.min(...pages.keys()));
    const { addresses } = await page.catch((error) => {
      pages.delete(from);
      throw error;
    });
    const address = addresses[task - from];
    if (address === undefined)
      throw new Error(`expected the address of task ${task}, got ${addresses.length} from ${from} on`);
    return address;
  };
}

/** How a rollout ended that has no result: it was cancelled or terminated from outside, or failed. */
function endOf(error: unknown): Pick<SweepRow, 'outcome'> & { readonly message: string | null } {
  if (isCancellation(error)) return { outcome: outcomeWithoutResult('cancelled'), message: null };
  const terminated = error instanceof ChildWorkflowFailure && error.cause instanceof TerminatedFailure;
  if (terminated) return { outcome: outcomeWithoutResult('terminated'), message: 'terminated from outside' };
  return { outcome: outcomeWithoutResult('failed'), message: rootMessage(error) };
}
