import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import type { EgressDecision } from '../../egress/refused.ts';
import { parseRows } from '../../egress/rows.ts';
import type { Store } from '../../store/store.ts';

/** The decisions on a host that the policy allows, and that could not be reached. */
const unreached: readonly EgressDecision[] = ['name-not-found', 'unreachable'];

/** Lists the hosts, with their ports, that the tests of a verdict asked for and could not reach. */
export async function unreachedHosts(store: Store, { network }: Pick<Verdict, 'network'>): Promise<readonly string[]> {
  if (network === undefined || network.refused === 0) return [];
  const rows = parseRows(Buffer.from(await store.get(network.log.digest)).toString('utf8'));
  return rows.filter(({ decision }) => unreached.includes(decision)).map(({ host, port }) => `${host}:${port}`);
}
