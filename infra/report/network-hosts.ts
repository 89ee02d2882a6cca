import type { NetworkUse } from '../../workflows/contracts/network.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type EgressRow, parseRows } from '../egress/rows.ts';
import type { Store } from '../store/store.ts';

/** The requests of a rollout for one host and port with one decision. */
export interface NetworkHost extends EgressRow {
  /** Whether the task's solution may have come from there. */
  readonly flagged: boolean;
}

/** Reads the hosts that an agent and its tests asked for: flagged ones first, then those with the most requests. */
export async function readNetworkHosts(
  store: Store,
  { network, verdict }: Pick<RolloutResult, 'network' | 'verdict'>,
): Promise<readonly NetworkHost[]> {
  const uses = [network, verdict?.network].filter((use) => use !== undefined);
  const read = await Promise.all(uses.map((use) => hostsOf(store, use)));
  return read.flat().sort((one, other) => Number(other.flagged) - Number(one.flagged) || other.requests - one.requests);
}

async function hostsOf(store: Store, { log, flags = [] }: NetworkUse): Promise<readonly NetworkHost[]> {
  const rows = parseRows(Buffer.from(await store.get(log.digest)).toString('utf8'));
  return rows.map((row) => {
    const isNamed = flags.some(({ evidence }) => evidence.split(' ').includes(row.host));
    return { ...row, flagged: row.decision === 'allowed' && row.host !== '' && isNamed };
  });
}
