import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createLease } from '../../../infra/hosts/lease.ts';
import { changeIdentity } from '../../../infra/stack.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { createHosts, type HostRecord } from '../../../infra/store/hosts.ts';
import type { Objects } from '../../../infra/store/objects.ts';
import { stackFormat } from '../../../workflows/contracts/format.ts';

/** The replacements after which an endless loop is ended. */
const endless = 1_000;
const record: HostRecord = {
  generation: 1,
  machine: 'a',
  renewal: 'r',
  version: '1.0.0',
  capacity: 4,
  taken: 0,
  sandboxes: ['local'],
  leaseMs: 60_000,
  draining: null,
  renewedAt: new Date().toISOString(),
  lost: null,
};

it('a store whose versions match no condition fails each write that depends on them, and holds none up for ever', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-until-written-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const directory = createDirectory(home);
  let replacements = 0;
  const objects: Objects = {
    ...directory,
    replace: async (key, bytes, version) => {
      replacements += 1;
      if (replacements > endless) throw new Error('the loop has no end');
      return version === null ? directory.replace(key, bytes, null) : null;
    },
  };
  const hosts = createHosts(objects);
  const failure = { type: 'StoreUnavailable', message: /matches no condition; run temper doctor$/ };

  const lease = createLease({ path: join(home, 'lease.json'), host: 'one', hosts, storeIsLocal: true });
  await lease.claim(record, null, new AbortController().signal);
  await assert.rejects(lease.renew(0), failure);
  await assert.rejects(
    hosts.update('one', (found) => found && { ...found, taken: 1 }),
    failure,
  );
  await changeIdentity(objects, () => ({ id: '00000000-0000-4000-8000-000000000000', format: stackFormat }));
  await assert.rejects(
    changeIdentity(objects, () => ({ id: '00000000-0000-4000-8000-000000000001', format: stackFormat })),
    failure,
  );
});
