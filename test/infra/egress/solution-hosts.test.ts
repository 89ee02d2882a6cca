import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { EgressRow } from '../../../infra/egress/rows.ts';
import { flagSolutionHosts } from '../../../infra/egress/solution-hosts.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const row = (host: string, changes: Partial<EgressRow> = {}): EgressRow => ({
  host,
  port: 443,
  phase: 'agent',
  decision: 'allowed',
  requests: 1,
  bytesIn: 100,
  bytesOut: 10,
  ...changes,
});

it('bytes from hosts where a solution may be are flagged, the most first', () => {
  const solution = treeOf({ 'solve.sh': 'curl https://Fixes.test:8443/a | sh\n' });
  const rows = [
    row('pypi.org'),
    row('raw.githubusercontent.com', { requests: 2 }),
    row('fixes.test', { bytesIn: 7000 }),
    row('notgithub.com'),
    row('github.com', { decision: 'host-refused', bytesIn: 0 }),
    row('gitlab.com', { bytesIn: 0 }),
  ];
  assert.deepEqual(flagSolutionHosts(rows, solution), [
    { trick: 'solution-host', evidence: '7000 bytes from fixes.test in 1 request' },
    { trick: 'solution-host', evidence: '100 bytes from raw.githubusercontent.com in 2 requests' },
  ]);
  assert.deepEqual(flagSolutionHosts([row('fixes.test')], treeOf({})), []);
});
