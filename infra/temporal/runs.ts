import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { defaultPool, type PolicyRef } from '../../workflows/contracts/policy.ts';
import { newestChain } from './chain.ts';

/** A training run, as the server lists it. */
export interface ListedRun {
  readonly run: string;
  readonly runKey: string;
  /** The pool of engines that serves its policy. */
  readonly pool: string;
  readonly running: boolean;
}

type ListingClient = Pick<Client, 'workflow'>;

/** The time for which the list may lag behind, with much to spare. */
const lagMs = 10 * 60_000;

/**
 * Queries the workflows of a type that are open. The list may lack the new execution of one that has just continued as new and have
 * its old one as closed, so those count, too.
 */
const openQuery = (type: string): string =>
  `WorkflowType="${type}" AND (ExecutionStatus="Running" OR ` +
  `(ExecutionStatus="ContinuedAsNew" AND CloseTime > "${new Date(Date.now() - lagMs).toISOString()}"))`;

/** Lists the runs that are open. The list may lag behind a moment. */
export async function openRuns(client: ListingClient): Promise<readonly ListedRun[]> {
  const runs = new Map<string, ListedRun>();
  for await (const info of client.workflow.list({ query: openQuery('trainingRun') })) {
    if (runs.has(info.workflowId)) continue;
    const run = await runOf(client, info);
    if (run?.running) runs.set(info.workflowId, run);
  }
  return [...runs.values()];
}

/**
 * Returns the run whose policy is meant where none is named: the open one that started last, else the one that ended last. A
 * run that has not published its first version has no policy yet.
 */
export async function newestRun(client: ListingClient): Promise<ListedRun | null> {
  const query = 'WorkflowType="trainingRun" AND ExecutionStatus != "ContinuedAsNew"';
  for await (const info of client.workflow.list({ query, pageSize: 10 })) {
    const { phase } = info.memo ?? {};
    if (phase !== undefined && phase !== 'preparing') return runOf(client, info);
  }
  return null;
}

/**
 * Returns the policy that a rollout outside of runs samples: that of the named run, else of the newest one. Undefined if there is
 * no run yet.
 */
export async function resolvePolicy(
  client: ListingClient,
  policy: PolicyRef | string | undefined,
): Promise<PolicyRef | undefined> {
  if (typeof policy === 'object') return policy;
  const found = policy === undefined ? await newestRun(client) : await findRun(client, policy);
  if (found !== null) return { runKey: found.runKey, pool: found.pool };
  if (policy === undefined) return undefined;
  throw new TemperFailure(
    'InvalidInput',
    `policy: expected the workflow id of a run, got ${policy}, which the server does not have; \`temper status\` lists the runs`,
  );
}

/** Returns a run by its workflow id; null if the server has none. */
export async function findRun(client: ListingClient, run: string): Promise<ListedRun | null> {
  const query = `WorkflowId="${run.replaceAll(/["\\]/g, '')}" AND WorkflowType="trainingRun" AND ExecutionStatus != "ContinuedAsNew"`;
  for await (const info of client.workflow.list({ query, pageSize: 1 })) return runOf(client, info);
  return null;
}

/** Returns the keys of the runs whose policies open sweeps evaluate. */
export async function evaluatedRuns(client: ListingClient): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for await (const { memo } of client.workflow.list({ query: openQuery('evaluationSweep') })) {
    if (typeof memo?.runKey === 'string') keys.add(memo.runKey);
  }
  return keys;
}

async function runOf(client: ListingClient, { workflowId, memo }: WorkflowExecutionInfo): Promise<ListedRun | null> {
  const chain = await newestChain(client, workflowId);
  if (chain === null) return null;
  const pool = typeof memo?.pool === 'string' ? memo.pool : defaultPool;
  return { run: workflowId, runKey: chain.key, pool, running: chain.running };
}
