import type { EgressRow } from '../../infra/egress/ledger.ts';
import { createEgressProxy, type EgressProxy } from '../../infra/egress/proxy.ts';
import type { Store } from '../../infra/store/store.ts';
import { exceeds, type NetworkUse } from '../../workflows/contracts/network.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Host } from './host.ts';

/** Opens the proxy of an agent's sandbox; undefined if the task has no network, or more than this host allows. */
export function openEgress({ network }: Pick<Host, 'network'>, task: Task | undefined): EgressProxy | undefined {
  const policy = task?.network;
  if (policy === undefined || policy.mode === 'none' || exceeds(policy.mode, network.cap)) return undefined;
  return createEgressProxy({ policy, phase: 'agent', network: network.outside });
}

/** Sums up what an agent asked of its network, and keeps the rows in the store. */
export async function networkUse(store: Store, rows: readonly EgressRow[]): Promise<NetworkUse> {
  const sum = (value: (row: EgressRow) => number): number => rows.reduce((total, row) => total + value(row), 0);
  return {
    requests: sum(({ requests }) => requests),
    refused: sum(({ decision, requests }) => (decision === 'allowed' ? 0 : requests)),
    bytesIn: sum(({ bytesIn }) => bytesIn),
    bytesOut: sum(({ bytesOut }) => bytesOut),
    log: await store.put(Buffer.from(JSON.stringify(rows)), 'application/json'),
  };
}
