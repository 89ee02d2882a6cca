import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import type { EgressDecision } from '../../egress/refused.ts';
import { parseRows } from '../../egress/rows.ts';
import type { Store } from '../../store/store.ts';

/** The decisions on a host that the policy allows, and that could not be reached. */
const unreached: readonly EgressDecision[] = ['name-not-found', 'unreachable', 'address-refused'];

/** The hosts, with their ports, that the tests of a verdict asked for, of those that the task allows. */
export interface AskedHosts {
  readonly reached: readonly string[];
  readonly unreached: readonly string[];
}

/** Lists the hosts that the tests of a verdict asked for, by whether they could be reached. */
export async function askedHosts(
  store: Pick<Store, 'get'>,
  { network }: Pick<Verdict, 'network'>,
): Promise<AskedHosts> {
  if (network === undefined) return { reached: [], unreached: [] };
  const rows = parseRows(Buffer.from(await store.get(network.log.digest)).toString('utf8'));
  const hostsOf = (wanted: readonly EgressDecision[]): readonly string[] =>
    rows.filter(({ decision }) => wanted.includes(decision)).map(({ host, port }) => `${host}:${port}`);
  return { reached: hostsOf(['allowed']), unreached: hostsOf(unreached) };
}

/** Lists the hosts that the tests of a verdict asked for and could not reach. */
export async function unreachedHosts(
  store: Pick<Store, 'get'>,
  { network }: Pick<Verdict, 'network'>,
): Promise<readonly string[]> {
  if (network === undefined || network.refused === 0) return [];
  return (await askedHosts(store, { network })).unreached;
}
