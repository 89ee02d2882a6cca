import { isDeepStrictEqual } from 'node:util';
import { log } from '@temporalio/activity';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { runEndName } from '../../infra/report/run-records.ts';
import type { Records } from '../../infra/store/records.ts';
import { isUnreadable, type RolloutRecords } from '../../infra/store/rollout-records.ts';
import type { StartRecords } from '../../infra/store/start-records.ts';
import { type RolloutToSettle, settleRollout } from '../../infra/temporal/settle-rollout.ts';
import { summariseGroup } from '../../workflows/algorithms/group-report.ts';
import { isClosedStatus, toRolloutReport } from '../../workflows/algorithms/rollout-end.ts';
import type { GroupReport, GroupSummary } from '../../workflows/contracts/group.ts';
import { groupId, rolloutId } from '../../workflows/contracts/ids.ts';
import type { OnFlag } from '../../workflows/contracts/on-flag.ts';
import type { RolloutRecord } from '../../workflows/contracts/rollout-record.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities, GroupState, ReconcileGroups, RecordGroup } from '../interfaces/control.ts';

export interface GroupDependencies {
  readonly client: Client;
  readonly records: Records;
  readonly rollouts: RolloutRecords;
  readonly starts: Pick<StartRecords, 'write'>;
}

type RecordDependencies = Omit<GroupDependencies, 'starts'>;

/** Creates the activities that record rollouts, groups and steps, and reconcile groups that did not report. */
export function createGroupActivities(
  deps: GroupDependencies,
): Pick<ControlActivities, 'recordRollout' | 'recordGroup' | 'reconcileGroups' | 'recordStep' | 'recordRunEnd'> {
  const { records, rollouts } = deps;
  return {
    recordRollout: (record) => atBoundary(() => recordRollout(rollouts, record)),
    recordGroup: (input) => atBoundary(() => recordGroup(deps, input)),
    reconcileGroups: (input) => atBoundary(() => reconcile(deps, input)),
    recordStep: (input) =>
      atBoundary(() => records.write(input.runKey, `step-${input.result.step}`, { ...input, recordedAt: Date.now() })),
    recordRunEnd: ({ runKey, ...end }) => atBoundary(() => records.write(runKey, runEndName, end)),
  };
}

/** Writes a record unless there is one. Returns the result of an earlier one that differs. */
export async function recordRollout(
  rollouts: Pick<RolloutRecords, 'write'>,
  record: RolloutRecord,
): ReturnType<ControlActivities['recordRollout']> {
  try {
    const { result } = await rollouts.write(record);
    // A record that was read has its keys in another order than one that is written.
    return { adopted: isDeepStrictEqual(result, record.result) ? null : result };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    log.warn('the rollout has a record that cannot be read; its own result counts', { error: error.message });
    return { adopted: null };
  }
}

/** Makes the report of a group whose rollouts have ended. Every writer makes it of the same records, and the first one counts. */
export async function recordGroup(
  deps: GroupDependencies,
  { group, groupKey, startedAt, task, member, rollouts, onFlag }: RecordGroup,
): Promise<GroupSummary> {
  const ended = await settleAll(
    deps,
    rollouts.map((rollout, position) => ({ workflowId: rolloutId(group, position), rollout, task })),
  );
  if (ended === null) throw new Error(`${group}: expected rollouts that have ended, got one that runs`);
  const { runKey = null, index = 0, admittedVersion = 0 } = member ?? {};
  const report: GroupReport = { group, index, runKey, task, admittedVersion, rollouts: ended.map(reportOf) };
  const written = await writeReport(deps, runKey ?? groupKey, report);
  if (runKey === null) await deps.starts.write({ kind: 'group', id: group, key: groupKey, startedAt, input: { task } });
  return summariseGroup(written, runKey ?? groupKey, onFlag);
}

/** Returns the summary of a group that has a report; nothing for another one. */
export async function endedGroup(
  records: Pick<Records, 'find'>,
  { runKey, index, onFlag }: { readonly runKey: string; readonly index: number; readonly onFlag?: OnFlag },
): Promise<{ readonly ended?: GroupSummary }> {
  const report = (await records.find(runKey, nameOf(index))) as GroupReport | null;
  return report === null ? {} : { ended: summariseGroup(report, runKey, onFlag) };
}

/** Returns the state of each of these groups, and records the reports of those that ended without one. */
export function reconcile(deps: RecordDependencies, input: ReconcileGroups): Promise<readonly GroupState[]> {
  const { run, runKey, rolloutsPerGroup, onFlag } = input;

  async function stateOf(index: number, admittedVersion: number): Promise<GroupState> {
    const group = groupId(run, runKey, index);
    // The record exists if the group ended normally and only its signal was lost.
    const { ended: known } = await endedGroup(deps.records, { runKey, index, ...(onFlag && { onFlag }) });
    if (known !== undefined) return { index, state: 'ended', summary: known };
    if (await isRunning(deps.client, group)) return { index, state: 'running' };
    const asked = Array.from({ length: rolloutsPerGroup }, (_, position) => ({
      workflowId: rolloutId(group, position),
      task: '',
    }));
    const rollouts = await settleAll(deps, asked);
    // A rollout whose group was terminated is being cancelled. Its outcome is requested again later.
    if (rollouts === null) return { index, state: 'ending' };
    const task = rollouts.map(({ result }) => result.task).find((name) => name !== '') ?? '';
    const report = { group, index, runKey, task, admittedVersion, rollouts: rollouts.map(reportOf) };
    const summary = summariseGroup(await writeReport(deps, runKey, report), runKey, onFlag);
    return { index, state: 'ended', summary };
  }

  return Promise.all(input.groups.map(({ index, admittedVersion }) => stateOf(index, admittedVersion)));
}

const nameOf = (index: number): string => `group-${index}`;
const reportOf = ({ result }: RolloutRecord) => toRolloutReport(result);

const writeReport = async (
  { records }: RecordDependencies,
  runKey: string,
  report: GroupReport,
): Promise<GroupReport> => (await records.writeOnce(runKey, nameOf(report.index), report)) as GroupReport;

/** Returns the records of these rollouts; null if one of them runs. */
async function settleAll(
  deps: RecordDependencies,
  asked: readonly RolloutToSettle[],
): Promise<readonly RolloutRecord[] | null> {
  const records = await Promise.all(asked.map((one) => settleRollout(deps, one)));
  return records.every((record) => record !== null) ? records : null;
}

async function isRunning(client: Client, workflowId: string): Promise<boolean> {
  try {
    return !isClosedStatus((await client.workflow.getHandle(workflowId).describe()).status.name);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
