import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../../../infra/settings/config.ts';
import { spawnedPart } from '../../../workers/up/spawned-part.ts';

describe('a part of the stack that does not become ready in time', () => {
  let home: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-part-'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  const partThat = (untilReady: (signal: AbortSignal) => Promise<void>) =>
    spawnedPart({
      name: 'policy',
      command: ['policy', '--help'],
      config: readConfig({ ...process.env, TEMPER_HOME: home, TEMPER_LOGS: 'stdout' }),
      logFile: join(home, 'policy.log'),
      readyTimeoutMs: 5,
      drainTimeoutMs: 10_000,
      untilReady: (_pid, signal) => untilReady(signal),
    });
  const message = 'policy did not answer within 0.005 s; see its lines above';

  it('is ended, and the error says how long it had; with TEMPER_LOGS=stdout there is no file', async () => {
    const part = partThat((signal) => pause(60_000, undefined, { signal }));
    await assert.rejects(part.start(AbortSignal.timeout(60_000)), { message });
    assert.ok(!existsSync(part.logFile));
  });

  it('is ended, also if the look at it does not notice that the time is over', async () => {
    const part = partThat(() => new Promise(() => {}));
    await assert.rejects(part.start(AbortSignal.timeout(60_000)), { message });
  });

  it('is ended, also if the stack is stopped before the look at it begins', async () => {
    const part = partThat(() => new Promise(() => {}));
    // An end of the process that no one waits for would end this one.
    await assert.rejects(part.start(AbortSignal.abort(new Error('stopped'))), { message: 'stopped' });
    await pause(200);
  });
});
