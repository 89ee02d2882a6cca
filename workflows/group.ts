import {
  CancellationScope,
  ChildWorkflowFailure,
  type ChildWorkflowHandle,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  ParentClosePolicy,
  setCurrentDetails,
  setHandler,
  startChild,
  TerminatedFailure,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { control } from './activities.ts';
import { outcomeWithoutResult } from './algorithms/rollout-end.ts';
import { rootMessage } from './contracts/error-message.ts';
import { type GroupInput, type GroupRequest, type GroupSummary, groupInput } from './contracts/group.ts';
import { rolloutId } from './contracts/ids.ts';
import { parseInput } from './contracts/input.ts';
import { groupDoneSignal, pauseSignal, resumeSignal, stopSignal } from './contracts/messages.ts';
import type { RolloutRequest, RolloutResult } from './contracts/rollout.ts';
import { searchAttributes, shownText } from './contracts/search-attributes.ts';
import { rolloutSeed } from './contracts/seeds.ts';
import type { rollout } from './rollout.ts';
import { cancelUntilEnded } from './shared/cancel-again.ts';

type Handle = ChildWorkflowHandle<typeof rollout>;

/**
 * Runs k rollouts of one task. It outlives its run's continue-as-new, and a rollout that is terminated or fails does not
 * affect the others. When every rollout has an outcome it reports to its run. It returns a summary, since its report is a record.
 */
export async function group(request: GroupRequest): Promise<GroupSummary> {
  const input = parseInput('group', groupInput, request);
  const handles: Handle[] = [];
  const finished: Ended[] = [];
  const { forward, deliverAll } = createForwarding(handles);
  setHandler(stopSignal, (outcome) => forward((handle) => handle.signal(stopSignal, outcome)), {
    description: 'ends every rollout with this outcome: "stale" or "cancelled"',
  });
  setHandler(pauseSignal, (reason) => forward((handle) => handle.signal(pauseSignal, reason)), {
    description: 'pauses every rollout; takes a reason',
  });
  setHandler(resumeSignal, () => forward((handle) => handle.signal(resumeSignal)), {
    description: 'resumes every rollout',
  });
  describe(input);
  onCancel(() => unfinished(input, finished));

  try {
    const starts = await startRollouts(input);
    handles.push(...starts);
    // Delivers the signals that came before the rollouts were started.
    await deliverAll();
    await Promise.all(
      handles.map(async (handle) => {
        finished.push(await endOf(handle));
        setCurrentDetails(progressText(input, finished));
      }),
    );
    return await CancellationScope.nonCancellable(() => report(input, handles));
  } catch (error) {
    if (isCancellation(error)) log.info('group cancelled before all of its rollouts were started');
    throw error;
  }
}

type Deliver = (handle: Handle) => Promise<void>;

/** Passes signals on to rollouts, one after the other, because signals that are sent at once may arrive in another order. */
function createForwarding(handles: readonly Handle[]) {
  const waiting: Deliver[] = [];
  let delivering = false;
  // A rollout that has already ended can't be signalled, and need not be.
  const toEach = (deliver: Deliver) => Promise.allSettled(handles.map(deliver));

  async function deliverAll(): Promise<void> {
    delivering = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await toEach(next);
    delivering = false;
  }

  return {
    deliverAll,
    async forward(deliver: Deliver): Promise<void> {
      waiting.push(deliver);
      if (handles.length > 0 && !delivering) await deliverAll();
    },
  };
}

/** Repeats the cancel that each rollout gets as a child, until all have ended. */
function onCancel(running: () => readonly string[]): void {
  CancellationScope.current().cancelRequested.catch(() => cancelUntilEnded(running));
}

function unfinished({ rolloutsPerGroup }: GroupInput, finished: readonly Ended[]): readonly string[] {
  const { workflowId } = workflowInfo();
  const ended = new Set(finished.map((one) => one.workflowId));
  return Array.from({ length: rolloutsPerGroup }, (_, index) => rolloutId(workflowId, index)).filter(
    (id) => !ended.has(id),
  );
}

async function startRollouts(input: GroupInput): Promise<Handle[]> {
  const { workflowId } = workflowInfo();
  const { task: address, settings, seed, member } = input;
  // The task is looked up once for all. If that fails, each rollout looks it up itself and ends with that failure.
  const { agent, agentOptions, hostTools, offlineTests } = settings;
  const query = {
    address,
    agent,
    ...(agentOptions && { agentOptions }),
    ...(hostTools && { hostTools }),
    ...(offlineTests && { offlineTests }),
  };
  const resolved = await control.resolveTask(query).catch((error) => {
    if (isCancellation(error)) throw error;
    return null;
  });
  const request: RolloutRequest = { task: resolved ?? address, ...settings, ...(member && { member }) };
  const seedOf = (index: number) => (seed === undefined ? {} : { seed: rolloutSeed(seed, index) });
  const name = resolved?.task.id ?? address;
  const attributes = [
    shownText(searchAttributes.task, name),
    shownText(searchAttributes.agent, settings.agent),
    ...(member ? [{ key: searchAttributes.run, value: member.run }] : []),
    ...(member ? [{ key: searchAttributes.policyVersion, value: member.admittedVersion }] : []),
  ];
  return Promise.all(
    Array.from({ length: input.rolloutsPerGroup }, (_, index) =>
      startChild<typeof rollout>('rollout', {
        workflowId: rolloutId(workflowId, index),
        args: [{ ...request, ...seedOf(index) }],
        parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
        cancellationType: 'WAIT_CANCELLATION_COMPLETED',
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
        typedSearchAttributes: attributes,
        staticSummary: `${settings.agent} at ${name}`,
      }),
    ),
  );
}

/** The end of a rollout, as its group shows it. What counts is its record. */
type Ended = Pick<RolloutResult, 'workflowId' | 'outcome' | 'reward' | 'failure'>;

async function endOf(handle: Handle): Promise<Ended> {
  const { workflowId } = handle;
  try {
    return await handle.result();
  } catch (error) {
    if (!isCancellation(error) && !(error instanceof ChildWorkflowFailure)) throw error;
    const terminated = error instanceof ChildWorkflowFailure && error.cause instanceof TerminatedFailure;
    const end = isCancellation(error) ? 'cancelled' : terminated ? 'terminated' : 'failed';
    const failure = end === 'failed' ? ({ type: 'Internal', message: rootMessage(error) } as const) : null;
    return { workflowId, outcome: outcomeWithoutResult(end), reward: null, failure };
  }
}

/** Has the report made of the rollouts' records, and signals its summary to the run, if it has one, which may be closed by now. */
async function report({ task, member, onFlag }: GroupInput, handles: readonly Handle[]): Promise<GroupSummary> {
  const { workflowId, firstExecutionRunId, startTime } = workflowInfo();
  const summary = await control.recordGroup({
    group: workflowId,
    groupKey: firstExecutionRunId,
    startedAt: startTime.getTime(),
    task,
    rollouts: handles.map(({ firstExecutionRunId }) => firstExecutionRunId),
    ...(member && { member }),
    ...(onFlag && { onFlag }),
  });
  if (member === undefined) return summary;
  await getExternalWorkflowHandle(member.run)
    .signal(groupDoneSignal, summary)
    .catch((error) => log.info('the run is closed and does not wait for this group', { error: String(error) }));
  return summary;
}

function describe({ member, task, settings }: GroupInput): void {
  upsertSearchAttributes([
    shownText(searchAttributes.task, task),
    shownText(searchAttributes.agent, settings.agent),
    ...(member ? [{ key: searchAttributes.run, value: member.run }] : []),
  ]);
}

function progressText(input: GroupInput, finished: readonly Ended[]): string {
  const rewards = finished.filter(({ reward }) => reward !== null).map(({ reward }) => reward);
  const failures = finished.filter(({ failure }) => failure !== null);
  return [
    `**${finished.length} of ${input.rolloutsPerGroup}** rollouts of ${input.task} have ended; rewards: ${rewards.join(', ') || 'none yet'}`,
    '',
    ...failures.map(
      ({ workflowId, outcome, failure }) => `- ${workflowId}: ${outcome}, ${failure?.type}: ${failure?.message}`,
    ),
  ].join('\n');
}
