import type { Client } from '@temporalio/client';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

/** The policy versions that running evaluation sweeps evaluate. */
export async function pinnedVersions(client: Client): Promise<readonly number[]> {
  const versions = new Set<number>();
  for await (const { typedSearchAttributes } of client.workflow.list({
    query: 'WorkflowType="evaluationSweep" AND ExecutionStatus="Running"',
  })) {
    const version = typedSearchAttributes.get(searchAttributes.policyVersion);
    if (version !== undefined) versions.add(version);
  }
  return [...versions];
}
