import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { readConfig } from '../../../infra/settings/config.ts';
import type { HostRecord } from '../../../infra/store/hosts.ts';
import { openSharedState } from '../../../infra/store/shared-state.ts';
import type { Check } from '../../../workers/cli/commands/doctor/checks.ts';
import { checkHosts } from '../../../workers/cli/commands/doctor/hosts.ts';

it('doctor warns of hosts that are silent or were declared lost, and says what to do', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-doctor-hosts-'));
  t.after(() => rm(home, { recursive: true }));
  const config = readConfig({ TEMPER_HOME: home });
  const { hosts } = await openSharedState(config.store);
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
  const working: HostRecord = {
    generation: 1,
    machine: 'machine',
    renewal: 'r',
    version: '0.5.0',
    capacity: 4,
    taken: 3,
    sandboxes: ['docker'],
    leaseMs: 60_000,
    draining: null,
    renewedAt: new Date().toISOString(),
    lost: null,
  };
  await hosts.replace('a-works', working, null);
  await hosts.replace('b-silent', { ...working, renewedAt: hourAgo }, null);
  const lost = { since: hourAgo, reason: 'forgotten by ada' };
  await hosts.replace('c-lost', { ...working, renewedAt: hourAgo, lost }, null);

  const checks: Check[] = [];
  for await (const check of checkHosts(config, { register: false, model: undefined })) checks.push(check);
  const ofHosts = checks.filter(({ name }) => name === 'host');
  assert.deepEqual(
    ofHosts.map(({ state }) => state),
    ['ok', 'warn', 'warn'],
  );
  const [works, silent, forgotten] = ofHosts;
  assert.match(works?.found ?? '', /^a-works: working, 3 of 4 slots taken/);
  assert.match(silent?.found ?? '', /^b-silent: silent/);
  assert.match(silent?.remedy ?? '', /start it again, or run `temper host forget b-silent` if it is gone/);
  assert.match(forgotten?.found ?? '', /^c-lost: lost, forgotten by ada \(since /);
  // Its record still has the slots of the rollouts that have moved on since.
  assert.doesNotMatch(forgotten?.found ?? '', /slots/);
  assert.match(
    forgotten?.remedy ?? '',
    /takes new rollouts; .* run `temper host forget c-lost`, so that they continue on another host/,
  );
});
