import type { Client } from '@temporalio/client';
import { isShare } from '../../workflows/contracts/share.ts';

/** An open run or sweep that has a share of the slots. */
export interface OpenShare {
  /** The end of its key. */
  readonly share: string;
  readonly sweep: boolean;
  readonly weight: number;
}

/** Lists the open runs and sweeps with their weights. The list may lag behind a moment. */
export async function openShares(client: Pick<Client, 'workflow'>): Promise<readonly OpenShare[]> {
  const query = 'WorkflowType IN ("trainingRun", "evaluationSweep") AND ExecutionStatus="Running"';
  const shares: OpenShare[] = [];
  for await (const { type, memo } of client.workflow.list({ query })) {
    if (!isShare(memo?.share)) continue;
    const { key, weight } = memo.share;
    shares.push({ share: key, weight, sweep: type === 'evaluationSweep' });
  }
  return shares;
}
