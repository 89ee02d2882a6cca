import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  getExternalWorkflowHandle,
  isCancellation,
  log,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { control, versionsOn } from '../activities.ts';
import { cancelledLookMostMs } from '../activity-options.ts';
import { staleness } from '../algorithms/staleness.ts';
import { rootMessage } from '../contracts/error-message.ts';
import type { GroupRequest } from '../contracts/group.ts';
import { groupId } from '../contracts/ids.ts';
import { stopSignal } from '../contracts/messages.ts';
import type { RunInput } from '../contracts/run.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import { groupSeed } from '../contracts/seeds.ts';
import { sharedPriority } from '../contracts/share.ts';
import type { group } from '../group.ts';
import { cancelByName, cancelUntilEnded, type Looks } from '../shared/cancel-again.ts';
import type { RunTally } from './run-tally.ts';

/**
 * Starts one group. It is abandoned when this execution closes, because it must outlive the run's continue-as-new. One that exists
 * already, since the run was reset, is in flight until the server says how it ended. One that has a report is not started.
 */
export async function startGroup(input: RunInput, tally: RunTally): Promise<void> {
  const { workflowId, firstExecutionRunId: runKey } = workflowInfo();
  const index = tally.admit();
  const { policyVersion } = tally;
  const id = groupId(workflowId, runKey, index);
  const chosen = await taskOf(input, tally, index);
  if (chosen === null) return;
  const { address, ended } = chosen;
  if (ended !== undefined) return tally.arrive(ended, false);
  const request: GroupRequest = {
    task: address,
    rolloutsPerGroup: input.rolloutsPerGroup,
    settings: input.settings,
    seed: groupSeed(input.seed, index),
    ...(input.onFlag && { onFlag: input.onFlag }),
    member: { run: workflowId, runKey, group: id, index, admittedVersion: policyVersion, pool: input.pool },
  };
  const handle = await startChild<typeof group>('group', {
    workflowId: id,
    args: [request],
    parentClosePolicy: ParentClosePolicy.ABANDON,
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    priority: sharedPriority(runKey, input.weight),
    typedSearchAttributes: [
      { key: searchAttributes.run, value: workflowId },
      { key: searchAttributes.policyVersion, value: policyVersion },
      { key: searchAttributes.step, value: tally.step + 1 },
    ],
    staticSummary: `group ${index}: ${input.rolloutsPerGroup} × ${address}`,
  }).catch((error) => {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return null;
    throw error;
  });
  if (handle === null) {
    tally.missing += 1;
    return;
  }
  // While this execution is its parent, it notices at once when a group ends without a report.
  handle.result().catch(() => {
    tally.missing += 1;
  });
}

/**
 * Returns the group's task, and its summary if it has ended before a restore of Temporal's database; null if that can't be
 * determined, which pauses the run and does not end it.
 */
async function taskOf({ tasks, seed, onFlag }: RunInput, tally: RunTally, index: number) {
  const { firstExecutionRunId: runKey } = workflowInfo();
  const leftOut = tally.leftOut?.list.digest;
  try {
    return await control.chooseTask({
      runKey,
      ...(onFlag && { onFlag }),
      tasks,
      seed,
      index,
      ...(leftOut !== undefined && { leftOut }),
    });
  } catch (error) {
    if (isCancellation(error)) throw error;
    tally.neverStarted(index, rootMessage(error));
    return null;
  }
}

/** Stops the groups in flight that are already too stale to be trained on. */
export async function stopStaleGroups(input: RunInput, tally: RunTally): Promise<void> {
  if (input.onStale !== 'cancel') return;
  const { workflowId, firstExecutionRunId: runKey } = workflowInfo();
  const tooOld = (version: number): boolean => staleness(tally.step + 1, version) > input.maxStaleness;
  // The version at admission is a lower bound; only the gateway knows whether this version sampled a token.
  const suspects = [...tally.inFlight].filter(([, admitted]) => tooOld(admitted)).map(([index]) => index);
  if (suspects.length === 0) return;
  const versions = await readVersions({ runKey, groups: suspects });
  for (const [position, index] of suspects.entries()) {
    const version = versions[position] ?? tally.policyVersion;
    if (!tooOld(version)) continue;
    tally.stops(index);
    await getExternalWorkflowHandle(groupId(workflowId, runKey, index))
      .signal(stopSignal, 'stale')
      .catch((error) => log.info('the stale group has already ended', { index, error: String(error) }));
  }
}

interface GroupsOfRun {
  readonly runKey: string;
  readonly groups: readonly number[];
}

/** Asks every live host, since the rollouts of a group may be on several. A host that does not answer is left out. */
async function readVersions(asked: GroupsOfRun): Promise<readonly (number | null)[]> {
  const { hosts } = await control.liveHosts();
  const answers = await Promise.all(
    hosts.map((host) =>
      versionsOn(host)
        .readVersions(asked)
        .catch((error) => {
          if (isCancellation(error)) throw error;
          log.warn('a host did not say which versions its sessions sampled', { host, error: rootMessage(error) });
          return [];
        }),
    ),
  );
  return asked.groups.map((_, position) => {
    const known = answers.flatMap((versions) => versions[position] ?? []);
    return known.length === 0 ? null : Math.min(...known);
  });
}

/**
 * Asks the server about groups in flight, by default about all, because a group that was terminated never reports. Returns those
 * that are closed and whose rollouts are not yet.
 */
export async function reconcile(
  input: RunInput,
  tally: RunTally,
  cancelling: boolean,
  asked = new Set(tally.inFlight.keys()),
): Promise<ReadonlySet<number>> {
  tally.missing = 0;
  const groups = [...tally.inFlight]
    .filter(([index]) => asked.has(index))
    .map(([index, admittedVersion]) => ({ index, admittedVersion }));
  if (groups.length === 0) return new Set();
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  const { rolloutsPerGroup, onFlag } = input;
  const states = await control
    .reconcileGroups({ run, runKey, rolloutsPerGroup, groups, ...(onFlag && { onFlag }) })
    .catch((error) => {
      if (isCancellation(error)) throw error;
      log.warn('the groups in flight could not be checked; the run tries again later', { error: rootMessage(error) });
      return [];
    });
  for (const state of states) if (state.state === 'ended') tally.arrive(state.summary, cancelling);
  return new Set(states.filter(({ state }) => state === 'ending').map(({ index }) => index));
}

/**
 * Cancels each group by name, because after continue-as-new the groups are no longer children of the run, and waits for their
 * ends.
 */
export async function cancelGroups(input: RunInput, tally: RunTally): Promise<void> {
  const { workflowId, firstExecutionRunId: runKey } = workflowInfo();
  const running = (): readonly string[] =>
    Array.from(tally.inFlight.keys(), (index) => groupId(workflowId, runKey, index));
  await cancelByName(running());
  await cancelUntilEnded(running, following(input, tally));
}

/** Looks as soon as a group ends without a report, and often after the rollouts that such groups have left. */
function following(input: RunInput, tally: RunTally): Looks {
  let ending: ReadonlySet<number> = new Set();
  let allAtMs = 0;
  return {
    isDue: () => tally.missing > 0,
    async look() {
      const all = ending.size === 0 || tally.missing > 0 || Date.now() >= allAtMs;
      if (all) allAtMs = Date.now() + cancelledLookMostMs;
      ending = await reconcile(input, tally, true, all ? undefined : new Set(ending));
      return ending.size > 0;
    },
  };
}
