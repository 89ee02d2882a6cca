import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { readConfig } from '../../../infra/settings/config.ts';
import { startDetached } from '../../../workers/cli/commands/up/detach.ts';

it('`temper up --detach` names the signal that ended its process before the stack ran', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-detach-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const killed = '--import=data:text/javascript,process.kill(process.pid,9)';
  const config = readConfig({ TEMPER_HOME: home, NODE_OPTIONS: killed });
  await assert.rejects(
    startDetached(config, { signal: t.signal, further: [] }),
    /^Error: signal SIGKILL\nthe stack did not start; its log is /,
  );
});
