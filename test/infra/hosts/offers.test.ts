import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { createOffers } from '../../../infra/hosts/offers.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { createHosts, type HostRecord } from '../../../infra/store/hosts.ts';

const root = await mkdtemp(join(tmpdir(), 'temper-offers-'));
after(() => rm(root, { recursive: true, force: true }));

const decided = { since: '2026-01-01T00:00:00.000Z', reason: 'by the test' };
const record = (change: Partial<HostRecord>): HostRecord => ({
  generation: 1,
  machine: 'm',
  renewal: 'r',
  version: '1.0.0',
  capacity: 4,
  taken: 0,
  sandboxes: ['docker'],
  leaseMs: 60_000,
  draining: null,
  renewedAt: decided.since,
  lost: null,
  ...change,
});

it('says which kinds of sandbox the other hosts offer that are not lost, and learns of changes', async () => {
  const hosts = createHosts(createDirectory(root));
  await hosts.replace('own', record({ sandboxes: ['local'] }), null);
  await hosts.replace('drained', record({ sandboxes: ['kubernetes'], draining: decided }), null);
  await hosts.replace('lost', record({ sandboxes: ['e2b'], lost: decided }), null);
  let nowMs = 0;
  const offers = createOffers(hosts, 'own', () => nowMs);
  const offered = async () =>
    Promise.all((['docker', 'local', 'kubernetes', 'e2b'] as const).map((kind) => offers(kind)));
  assert.deepEqual(await offered(), [false, false, true, false]);
  await hosts.replace('new', record({}), null);
  nowMs = 10_001;
  assert.deepEqual(await offered(), [true, false, true, false]);
});
