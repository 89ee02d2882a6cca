import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { tryLock } from '../../../infra/process/file-lock.ts';
import { readConfig } from '../../../infra/settings/config.ts';
import { claimHome } from '../../../workers/up/claim-home.ts';
import { createUpFileWriter } from '../../../workers/up/up-file.ts';
import { until } from '../../helpers/until.ts';

it('a home is waited for until its stack has released the lock, which it does after it has removed its file', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-claim-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const config = readConfig({ TEMPER_HOME: home });
  const addresses = { temporal: '', namespace: '', ui: null, policy: null, gatewayControl: '' };
  const stack = createUpFileWriter({ config, addresses, state: () => 'stopping', parts: () => [] });
  const lock = await tryLock(config.paths.lock);
  assert.ok(!('holder' in lock));
  stack.changed();
  await stack.written();
  let looks = 0;
  const path = config.paths.up;
  const watched = {
    ...config,
    paths: {
      ...config.paths,
      get up() {
        looks += 1;
        return path;
      },
    },
  };
  const claimed = claimHome(watched, () => undefined, t.signal);
  await until(() => looks > 0);
  await stack.remove();
  const looksBefore = looks;
  await Promise.race([claimed, until(() => looks > looksBefore + 1)]);
  await lock.release();
  await (await claimed).release();
});
