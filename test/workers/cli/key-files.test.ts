import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { readConfig } from '../../../infra/settings/config.ts';
import { type Check, checkKeyFiles } from '../../../workers/cli/commands/doctor/checks.ts';

it('doctor names files with secrets that every account may read', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-keys-'));
  t.after(() => rm(home, { recursive: true }));
  const file = join(home, 'key');
  await writeFile(file, 'a'.repeat(64));
  const config = readConfig({ TEMPER_HOME: home, TEMPER_STACK_KEY_FILE: file, E2B_API_KEY_FILE: join(home, 'none') });
  const found = async (mode: number) => {
    await chmod(file, mode);
    const checks: Check[] = [];
    for await (const one of checkKeyFiles(config, { register: false, model: undefined })) checks.push(one);
    return checks;
  };
  for (const mode of [0o600, 0o440]) assert.deepEqual(await found(mode), []);
  assert.deepEqual(await found(0o644), [
    {
      name: 'secret',
      state: 'warn',
      found: `every account of this machine may use ${file} (mode 644)`,
      remedy: `chmod 600 ${file}`,
    },
  ]);
});
