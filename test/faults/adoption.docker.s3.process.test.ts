import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRuntime } from '../../infra/agents/runtime.ts';
import { cacheDirectory } from '../../infra/process/cache.mjs';
import { templateNameOf } from '../../infra/sandbox/e2b/templates.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import { type E2bServer, startE2bServer } from '../helpers/e2b/server.ts';
import { until } from '../helpers/until.ts';
import { limitMs, otherThan, startTwoHosts, type TwoHosts } from './two-hosts.ts';

describe('a rollout in a sandbox that outlives its host', () => {
  let provider: E2bServer;
  let hosts: TwoHosts;

  before(async () => {
    const image = 'temper-tasks:bookworm';
    const programs = [await createRuntime({ cacheDir: cacheDirectory(process.env) }).prepare()];
    const template = { image, cpuCount: 2, memoryMB: 8_192, programs };
    provider = await startE2bServer({ templates: { [templateNameOf(image)]: template } });
    const settings = { TEMPER_E2B_URL: provider.url, E2B_API_KEY: provider.key };
    hosts = await startTwoHosts({ sandbox: 'e2b', settings });
  });
  after(async () => {
    await hosts?.close();
    await provider?.close();
  });
  const noSandboxLeft = (): Promise<unknown> => until(() => provider.ids().length === 0, limitMs);

  it('continues on another host when its own was only cut off, which then does nothing more', async () => {
    const rollout = await hosts.startRollout('paused');
    const { host: lost, waiting } = rollout;
    hosts.signal(lost, 'SIGSTOP');
    await hosts.forget(lost);
    await rollout.adoptedBy(otherThan(lost));
    const journal = join(hosts.journals, lost, `${sessionId(rollout.epoch)}.jsonl`);
    const before = await readFile(journal, 'utf8');
    hosts.signal(lost, 'SIGCONT');
    waiting[0]?.resolve();
    const ended = await hosts.ended(lost);
    assert.equal(ended?.code, 1);
    assert.match(ended?.stderr ?? '', new RegExp(`host ${lost}/1 was declared lost`));
    assert.equal(await readFile(journal, 'utf8'), before);
    assert.equal(provider.ids(rollout.sandbox).length, 1);
    // It comes back as another generation, and finds the sandbox of its earlier life.
    hosts.signal(lost, 'SIGKILL');
    await hosts.startHost(lost);
    waiting[1]?.resolve();
    await hosts.assertUnbroken(await rollout.result());
    await noSandboxLeft();
  });

  it('continues on another host when its own is gone', async () => {
    const rollout = await hosts.startRollout('killed');
    hosts.signal(rollout.host, 'SIGKILL');
    await hosts.forget(rollout.host);
    await rollout.adoptedBy(otherThan(rollout.host));
    rollout.waiting[1]?.resolve();
    await hosts.assertUnbroken(await rollout.result());
    await noSandboxLeft();
    await hosts.startHost(rollout.host);
  });

  it('begins again, and says why, when the journals are gone, too, and its sandbox is removed at once', async () => {
    const { host, sandbox, waiting, result } = await hosts.startRollout('disk-lost');
    hosts.signal(host, 'SIGKILL');
    await rm(join(hosts.journals, host), { recursive: true });
    await hosts.forget(host);
    await until(() => waiting.length === 2, limitMs);
    assert.deepEqual(provider.ids(sandbox), []);
    waiting[1]?.resolve();
    const { outcome, reward, epochs, adoptions, ...rest } = await result();
    assert.deepEqual([outcome, reward, epochs, adoptions], ['scored', 1, 2, undefined]);
    assert.match(JSON.stringify(rest), new RegExp(`finds no journal that host ${host} has left`));
  });
});
