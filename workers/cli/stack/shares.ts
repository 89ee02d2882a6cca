import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import type { Hosts } from '../../../infra/store/hosts.ts';
import { type OpenShare, openShares } from '../../../infra/temporal/shares.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import { isShare } from '../../../workflows/contracts/share.ts';

/** The part of the slots that an open run or sweep may hold, and what it holds. */
export interface ShareFacts {
  readonly weight: number;
  /** The part of the slots that is its due, from 0 to 1, while all open runs (or sweeps) want slots. */
  readonly share: number;
  /** The number of slots that it holds, by the last renewals of the hosts. */
  readonly slots: number;
  /** The number of its rollouts that wait for a slot. */
  readonly queued: number;
  /** The number of its rollouts that have given their slot back: they are graded, or wait for it. */
  readonly grading: number;
}

/** Returns what reads the share of a run or sweep; null for one that is closed. */
export async function readShares(
  client: Client,
  hosts: Pick<Hosts, 'names' | 'find'>,
): Promise<(info: WorkflowExecutionInfo) => Promise<ShareFacts | null>> {
  const open = await openShares(client);
  const held = await heldSlots(hosts);
  return async ({ workflowId, type, status, memo }) => {
    if (status.name !== 'RUNNING' || !isShare(memo?.share)) return null;
    const { key, weight } = memo.share;
    const share = partOf(weight, open, type === 'evaluationSweep');
    const [placed, queued] = await Promise.all([true, false].map((had) => countRunning(client, workflowId, had)));
    const slots = held.get(key) ?? 0;
    return { weight, share, slots, queued: queued ?? 0, grading: Math.max(0, (placed ?? 0) - slots) };
  };
}

/** Adds up the slots that each run and sweep holds on the hosts that are not lost. */
async function heldSlots(hosts: Pick<Hosts, 'names' | 'find'>): Promise<ReadonlyMap<string, number>> {
  const held = new Map<string, number>();
  for (const found of await Promise.all((await hosts.names()).map(hosts.find))) {
    if (found === null || found.record.lost !== null) continue;
    for (const [share, slots] of Object.entries(found.record.heldBy ?? {})) {
      held.set(share, (held.get(share) ?? 0) + slots);
    }
  }
  return held;
}

function partOf(weight: number, open: readonly OpenShare[], sweep: boolean): number {
  const all = open.filter((one) => one.sweep === sweep).reduce((sum, one) => sum + one.weight, 0);
  // The list may not have the newest one yet.
  return weight / Math.max(weight, all);
}

/** Counts the rollouts that run and have ever had a host, or have had none. A rollout keeps its host's name when its slot is free again. */
async function countRunning(client: Client, run: string, hadHost: boolean): Promise<number> {
  const { run: ofRun, host } = searchAttributes;
  const name = run.replaceAll(/["\\]/g, '\\$&');
  const placed = `${host.name} IS ${hadHost ? 'NOT NULL' : 'NULL'}`;
  const query = `WorkflowType = "rollout" AND ExecutionStatus = "Running" AND ${ofRun.name} = "${name}" AND ${placed}`;
  return (await client.workflow.count(query)).count;
}
