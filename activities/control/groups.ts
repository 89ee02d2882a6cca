import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { Records } from '../../infra/store/records.ts';
import { summariseGroup } from '../../workflows/algorithms/group-report.ts';
import { endOfStatus, outcomeWithoutResult, toRolloutReport } from '../../workflows/algorithms/rollout-end.ts';
import { type RolloutCost, readCost } from '../../workflows/contracts/cost.ts';
import type { GroupReport, RolloutReport } from '../../workflows/contracts/group.ts';
import { groupId, rolloutId } from '../../workflows/contracts/ids.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities, GroupState, ReconcileGroups } from '../interfaces/control.ts';

export interface GroupDependencies {
  readonly client: Client;
  readonly records: Records;
}

/** Creates the activities that record the reports of groups, and reconcile groups that did not report. */
export function createGroupActivities(
  deps: GroupDependencies,
): Pick<ControlActivities, 'recordGroup' | 'readRolloutCost' | 'reconcileGroups' | 'recordStep'> {
  const { records } = deps;
  return {
    recordGroup: (report) =>
      atBoundary(async () => {
        if (report.runKey !== null) await records.write(report.runKey, `group-${report.index}`, report);
      }),
    readRolloutCost: ({ workflowId }) =>
      atBoundary(async () => {
        const { memo } = await deps.client.workflow.getHandle(workflowId).describe();
        return { cost: readCost(memo) ?? null };
      }),
    reconcileGroups: (input) => atBoundary(() => reconcile(deps, input)),
    recordStep: (input) =>
      atBoundary(() => records.write(input.runKey, `step-${input.result.step}`, { ...input, recordedAt: Date.now() })),
  };
}

/** Returns the state of each of these groups, and records the reports of those that ended without one. */
export function reconcile(
  { client, records }: GroupDependencies,
  input: ReconcileGroups,
): Promise<readonly GroupState[]> {
  async function stateOf(index: number, admittedVersion: number): Promise<GroupState> {
    const id = groupId(input.run, input.runKey, index);
    const { status } = await endOf(id);
    if (status === 'RUNNING') return { index, state: 'running' };
    // The record exists if the group ended normally and only its signal was lost.
    const known = (await records.find(input.runKey, `group-${index}`)) as GroupReport | null;
    if (known !== null) return { index, state: 'ended', summary: summariseGroup(known, input.runKey) };
    const rollouts = await Promise.all(
      Array.from({ length: input.rolloutsPerGroup }, (_, position) => rolloutReport(rolloutId(id, position))),
    );
    // A rollout whose group was terminated is being cancelled. Its outcome is requested again later.
    if (rollouts.some((report) => report === 'running')) return { index, state: 'ending' };
    const ended = rollouts.filter((report) => report !== 'running');
    const report: GroupReport = { group: id, index, runKey: input.runKey, task: '', admittedVersion, rollouts: ended };
    await records.write(input.runKey, `group-${index}`, report);
    return { index, state: 'ended', summary: summariseGroup(report, input.runKey) };
  }

  async function endOf(id: string): Promise<{ readonly status: string; readonly cost?: RolloutCost | undefined }> {
    try {
      const { status, memo } = await client.workflow.getHandle(id).describe();
      return { status: status.name, cost: readCost(memo) };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { status: 'NOT_FOUND' };
      throw error;
    }
  }

  async function rolloutReport(workflowId: string): Promise<RolloutReport | 'running'> {
    const none = { rollout: workflowId, workflowId, reward: null, stop: null, trace: null, stageSeconds: {} };
    const { status, cost } = await endOf(workflowId);
    if (status === 'RUNNING') return 'running';
    if (status === 'COMPLETED')
      return toRolloutReport((await client.workflow.getHandle(workflowId).result()) as RolloutResult);
    const message = `the workflow ended as ${status} outside of its group`;
    const failure = { type: 'Internal', message } as const;
    return { ...none, outcome: outcomeWithoutResult(endOfStatus(status)), failure, ...(cost && { cost }) };
  }

  return Promise.all(input.groups.map(({ index, admittedVersion }) => stateOf(index, admittedVersion)));
}
