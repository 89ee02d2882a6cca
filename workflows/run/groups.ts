import {
  CancellationScope,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { control } from '../activities.ts';
import { staleness } from '../algorithms/staleness.ts';
import type { GroupRequest } from '../contracts/group.ts';
import { groupId } from '../contracts/ids.ts';
import { stopSignal } from '../contracts/messages.ts';
import type { RunInput } from '../contracts/run.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import type { group } from '../group.ts';
import { rootMessage } from './root-message.ts';
import type { Ledger } from './tally.ts';

/** Starts one group. ABANDON: it must outlive the run's continue-as-new, which closes this execution. */
export async function startGroup(input: RunInput, ledger: Ledger): Promise<void> {
  const { workflowId, firstExecutionRunId: runKey } = workflowInfo();
  const index = ledger.admit();
  const { policyVersion } = ledger;
  const id = groupId(workflowId, runKey, index);
  const address = await taskOf(input, ledger, index);
  if (address === null) return;
  const request: GroupRequest = {
    task: address,
    rolloutsPerGroup: input.rolloutsPerGroup,
    settings: input.settings,
    member: { run: workflowId, runKey, group: id, index, admittedVersion: policyVersion },
  };
  const handle = await startChild<typeof group>('group', {
    workflowId: id,
    args: [request],
    parentClosePolicy: ParentClosePolicy.ABANDON,
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    typedSearchAttributes: [
      { key: searchAttributes.run, value: workflowId },
      { key: searchAttributes.policyVersion, value: policyVersion },
      { key: searchAttributes.step, value: ledger.step + 1 },
    ],
    staticSummary: `group ${index}: ${input.rolloutsPerGroup} × ${address}`,
  });
  // As long as this execution is its parent, the end of a group that can't report is seen at once.
  handle.result().catch(() => {
    ledger.missing += 1;
  });
}

/** Null when nobody can say which task it is: that pauses the run, and does not end it. */
async function taskOf({ tasks, seed }: RunInput, ledger: Ledger, index: number): Promise<string | null> {
  try {
    return (await control.chooseTask({ tasks, seed, index })).address;
  } catch (error) {
    if (isCancellation(error)) throw error;
    ledger.neverStarted(index, rootMessage(error));
    return null;
  }
}

/** Stops the groups in flight that trail too far already: what they would bring could not be trained on. */
export async function stopStaleGroups(input: RunInput, ledger: Ledger): Promise<void> {
  if (input.onStale !== 'cancel') return;
  const { workflowId, firstExecutionRunId: runKey } = workflowInfo();
  const tooOld = (version: number): boolean => staleness(ledger.step + 1, version) > input.maxStaleness;
  // The version at admission is a lower bound; only the gateway knows whether a token was sampled by it.
  const suspects = [...ledger.inFlight].filter(([, admitted]) => tooOld(admitted)).map(([index]) => index);
  if (suspects.length === 0) return;
  const versions = await control.readVersions({ runKey, groups: suspects });
  for (const [position, index] of suspects.entries()) {
    const version = versions[position] ?? ledger.policyVersion;
    if (!tooOld(version)) continue;
    await getExternalWorkflowHandle(groupId(workflowId, runKey, index))
      .signal(stopSignal, 'stale')
      .catch((error) => log.info('the stale group has ended by itself', { index, error: String(error) }));
  }
}

/** Asks the server for every group in flight: one that was terminated never reports. */
export async function reconcile(input: RunInput, ledger: Ledger, cancelling: boolean): Promise<void> {
  ledger.missing = 0;
  if (ledger.inFlight.size === 0) return;
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  const groups = [...ledger.inFlight].map(([index, admittedVersion]) => ({ index, admittedVersion }));
  const states = await control
    .reconcileGroups({ run, runKey, rolloutsPerGroup: input.rolloutsPerGroup, groups })
    .catch((error) => {
      if (isCancellation(error)) throw error;
      log.warn('the groups in flight are asked for again in a while', { error: rootMessage(error) });
      return [];
    });
  for (const state of states) if (state.state === 'ended') ledger.arrive(state.summary, cancelling);
}

/** A cancel of the run reaches each group by name, because they are not its children any more after continue-as-new. */
export async function cancelGroups(ledger: Ledger): Promise<void> {
  const { workflowId, firstExecutionRunId: runKey } = workflowInfo();
  await CancellationScope.nonCancellable(() =>
    Promise.allSettled(
      [...ledger.inFlight.keys()].map((index) =>
        getExternalWorkflowHandle(groupId(workflowId, runKey, index)).cancel(),
      ),
    ),
  );
}
