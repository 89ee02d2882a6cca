import { namedSkewMs } from '../../../../infra/hosts/clocks.ts';
import { openSharedState } from '../../../../infra/store/shared-state.ts';
import { type HostRow, hostRows } from '../../stack/hosts.ts';
import { ago } from '../../text/output.ts';
import { type Check, ok, type RunChecks, warn } from './checks.ts';

/** Checks the hosts of the stack by their records in the store. */
export const checkHosts: RunChecks = async function* (config) {
  const shared = await openSharedState(config.store);
  const rows = await hostRows(shared).catch(() => []); // checkStore has reported it
  for (const row of rows) {
    yield hostCheck(row);
    for (const { text, since } of Object.values(row.notes)) {
      yield warn('host', `${row.name}: ${text} (since ${since})`, 'see docs/guides/hosts.md');
    }
    const skewMs = row.state === 'working' ? await shared.hosts.skewMs(row.name) : null;
    if (skewMs !== null && Math.abs(skewMs) > namedSkewMs) {
      const seconds = Math.round(Math.abs(skewMs) / 1000);
      yield warn('clock', `those of ${row.name} and of the store differ by ${seconds} s`, 'let NTP set both');
    }
  }
};

function hostCheck({ name, state, lost, taken, capacity, version, renewedAt }: HostRow): Check {
  const life = `${version}, last sign of life ${ago(renewedAt)}`;
  if (lost !== null) {
    const found = `${name}: ${state}, ${lost.reason} (since ${lost.since}), ${life}`;
    return warn(
      'host',
      found,
      `start it again, and it takes new rollouts; if old ones still wait for it, run \`temper host forget ${name}\`, so that they continue on another host`,
    );
  }
  const found = `${name}: ${state}, ${taken} of ${capacity} slots taken, ${life}`;
  if (state !== 'silent') return ok('host', found);
  return warn('host', found, `start it again, or run \`temper host forget ${name}\` if it is gone`);
}
