import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { type OpenShare, openShares } from '../../../infra/temporal/shares.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import { isShare } from '../../../workflows/contracts/share.ts';

/** The part of the slots that an open run or sweep may hold, and what it holds. */
export interface ShareFacts {
  readonly weight: number;
  /** The part of the slots that is its due, from 0 to 1, while all open runs (or sweeps) want slots. */
  readonly share: number;
  /** The number of its rollouts that have a slot. */
  readonly placed: number;
}

/** Returns what reads the share of a run or sweep; null for one that is closed. */
export async function readShares(client: Client): Promise<(info: WorkflowExecutionInfo) => Promise<ShareFacts | null>> {
  const open = await openShares(client);
  return async ({ workflowId, type, status, memo }) => {
    if (status.name !== 'RUNNING' || !isShare(memo?.share)) return null;
    const { weight } = memo.share;
    const share = partOf(weight, open, type === 'evaluationSweep');
    return { weight, share, placed: await countPlaced(client, workflowId) };
  };
}

function partOf(weight: number, open: readonly OpenShare[], sweep: boolean): number {
  const all = open.filter((one) => one.sweep === sweep).reduce((sum, one) => sum + one.weight, 0);
  // The list may not have the newest one yet.
  return weight / Math.max(weight, all);
}

async function countPlaced(client: Client, run: string): Promise<number> {
  const { run: ofRun, host } = searchAttributes;
  const name = run.replaceAll(/["\\]/g, '\\$&');
  const query = `WorkflowType = "rollout" AND ExecutionStatus = "Running" AND ${ofRun.name} = "${name}" AND ${host.name} IS NOT NULL`;
  return (await client.workflow.count(query)).count;
}
