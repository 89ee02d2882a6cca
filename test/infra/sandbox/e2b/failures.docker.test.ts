import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createE2bApi } from '../../../../infra/sandbox/e2b/api.ts';
import { createEnvd, createEnvdConnections } from '../../../../infra/sandbox/e2b/envd.ts';
import { createLease } from '../../../../infra/sandbox/e2b/lease.ts';
import { createE2bProvider } from '../../../../infra/sandbox/e2b/provider.ts';
import type { E2bSettings } from '../../../../infra/sandbox/e2b/settings.ts';
import { createE2bShell } from '../../../../infra/sandbox/e2b/shell.ts';
import { templateNameOf } from '../../../../infra/sandbox/e2b/templates.ts';
import type { SandboxFailure } from '../../../../infra/sandbox/failure.ts';
import { openProviders } from '../../../../infra/sandbox/providers.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { readConfig } from '../../../../infra/settings/config.ts';
import { imageKey, startE2bServer } from '../../../helpers/e2b/server.ts';
import { e2bSettings } from '../../../helpers/e2b/settings.ts';
import { foreground, sh } from '../contract.ts';
import { runtime } from '../contract-processes.ts';

const image = 'temper-tasks:bookworm';
const size = { image, cpuCount: 2, memoryMB: 1_024, envdVersion: '0.5.10' };
const templates = {
  [templateNameOf(image)]: size,
  other: size,
  [templateNameOf('old')]: { ...size, envdVersion: '0.5.1' },
};
const server = await startE2bServer({ templates, maxHours: 1 });
const home = mkdtempSync(join(tmpdir(), 'e2b-home-'));
const stack = `failures-${process.pid}`;
const settings = e2bSettings(server, home);
const open = () => createE2bProvider({ stack, ...settings });
const provider = open();
/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const minuteMs = 60_000;
const spec = (name: string, changes: Partial<SandboxSpec> = {}, lifetimeMs = 10 * minuteMs): SandboxSpec => {
  const expiresAtMs = Date.now() + lifetimeMs;
  const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent' as const, expiresAtMs };
  const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
  return { name: `${stack}-${name}`, image, labels, ...limits, workdir: '/workspace', mounts: [], ...changes };
};

after(async () => {
  await provider.close();
  await server.close();
  rmSync(home, { recursive: true });
});

describe('an E2B server that refuses', () => {
  const refusesStart = async (e2b: E2bSettings | null, message: RegExp) => {
    const opened = openProviders({ stack, root: home, preferred: 'e2b', e2b });
    await assert.rejects(opened, { type: 'SandboxUnavailable', message });
  };

  it('ends a host at its start if the key is wrong, and names both settings', async () => {
    const message = /refused the API key \(401\); check E2B_API_KEY and TEMPER_E2B_URL.*Invalid API key/s;
    await refusesStart({ ...settings, apiKey: async () => 'e2b_wrong' }, message);
  });

  it('is not asked with a key that cannot be read, which ends a host at its start', async () => {
    const file = join(home, 'key');
    const { e2b } = readConfig({ TEMPER_E2B_URL: server.url, E2B_API_KEY_FILE: file });
    await refusesStart(e2b, /E2B_API_KEY_FILE: expected a file that this account may read, got .*key \(ENOENT\)/);
    writeFileSync(file, '\n');
    await refusesStart(e2b, /E2B_API_KEY_FILE: expected a key in .*key, got an empty file/);
    writeFileSync(file, `${server.key}\n`);
    await openProviders({ stack, root: home, preferred: 'e2b', e2b });
  });

  it('has another API at a wrong address, which ends a host at its start and is no fault of a task', async () => {
    const elsewhere = { ...settings, url: `${server.url}/elsewhere` };
    const message = /expected a server with E2B's API, got one without \(404\); correct TEMPER_E2B_URL/;
    await refusesStart(elsewhere, message);
    const wrong = createE2bProvider({ stack, ...elsewhere });
    const prepare = wrong.prepare({ task: 'task', image, source: 'registry' }, () => undefined, limit());
    await assert.rejects(prepare, { type: 'SandboxUnavailable', message });
    await wrong.close();
    const other = createServer((_, response) => response.writeHead(400).end('<Error>InvalidBucketName</Error>'));
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    await refusesStart({ ...settings, url }, /got one without \(400\); correct TEMPER_E2B_URL/);
    other.close();
    other.closeAllConnections();
  });

  it('may come up if it does not answer', async () => {
    const away = createE2bProvider({ stack, ...settings, url: 'http://127.0.0.1:9' });
    const { ready, mayComeUp } = await away.describe();
    assert.deepEqual([ready, mayComeUp], [false, true]);
    await assert.rejects(away.attach('some-name'), { type: 'SandboxUnavailable' });
    await away.close();
  });

  it('lacks a template by its name, and finds the one that the file names', async () => {
    const absent = {
      type: 'MissingImage',
      message: /no template ghcr-io-a-b-1-2-[0-9a-f]{8} for the image ghcr.io\/a\/B:1.2/,
    };
    const prepare = () =>
      provider.prepare({ task: 'task', image: 'ghcr.io/a/B:1.2', source: 'registry' }, () => undefined, limit());
    await assert.rejects(prepare(), absent);
    writeFileSync(settings.templates, '{ "ghcr.io/a/B:1.2": "other" }');
    assert.equal(await prepare(), 'ghcr.io/a/B:1.2');
  });

  it('replaces the image of a template by a metadata key, and gets the programs that it lacks', async () => {
    writeFileSync(settings.templates, JSON.stringify({ '*': { template: 'other', imageKey } }));
    const asked = spec('replaced', { mounts: [runtime], diskMb: 2_048 });
    assert.equal(await provider.imageId(image), `other with ${image}`);
    const sandbox = await provider.ensure(asked, limit());
    rmSync(settings.templates);
    const { templateID, metadata } = server.creations.at(-1) as { templateID: string; metadata: object };
    assert.deepEqual([templateID, (metadata as Record<string, string>)[imageKey]], ['other', image]);
    const { stdout } = await sandbox.exec({ ...foreground, argv: [`${runtime.target}/node`, '--version'] }, limit());
    assert.equal(String(stdout).trim(), process.version);
    await provider.remove(asked.name);
  });

  it('throttles, or has no place for one more sandbox', async () => {
    for (const [fault, message, retryAfterMs] of [
      ['quota', /most sandboxes at once; lower TEMPER_CAPACITY/, null],
      [{ retryAfterSec: 7 }, /throttles this account/, 7_000],
      [{ retryAfterSec: null }, /throttles this account/, null],
    ] as const) {
      server.createFaults.push(fault);
      const refused = { type: 'Throttled', message, retryAfterMs };
      await assert.rejects(provider.ensure(spec('refused'), limit()), refused);
    }
    server.createFaults.push('busy');
    await assert.rejects(provider.ensure(spec('refused'), limit()), { type: 'SandboxUnavailable', message: /no room/ });
  });

  it('allows no lease as long as the task may take', async () => {
    const refusal = { type: 'UnsupportedTask', message: /TEMPER_E2B_HOURS.*cannot be greater than 1 hours/s };
    await assert.rejects(provider.ensure(spec('long', {}, 120 * minuteMs), limit()), refusal);
  });

  it('has a template that is too small or too old, and nothing is left of it', async () => {
    const small = { type: 'UnsupportedTask', message: /1024 MB of memory, and the task needs 4096/ };
    await assert.rejects(provider.ensure(spec('large', { memoryMb: 4_096 }), limit()), small);
    const old = {
      type: 'UnsupportedTask',
      message: /template old-[0-9a-f]{8} has envd 0.5.1, and 0.5.2 is the oldest that works/,
    };
    await assert.rejects(provider.ensure(spec('old', { image: 'old' }), limit()), old);
    assert.deepEqual(await provider.list(stack), []);
  });
});

describe('an E2B sandbox', () => {
  it('is lost with the time that its lease had left, at the end of which the lease would have been renewed', async () => {
    const asked = spec('leased');
    await provider.ensure(asked, limit());
    const [id = assert.fail()] = server.ids(asked.name);
    const api = createE2bApi(settings);
    const access = (await api.open(id, minuteMs)) ?? assert.fail('expected the sandbox');
    const connections = createEnvdConnections();
    const use = (leftMs: number): Promise<unknown> => {
      const lease = createLease({ endMs: Date.now() + leftMs, renew: (ms) => api.renew(id, ms) });
      const shell = createE2bShell({ name: asked.name, id, api, envd: createEnvd(access, connections), lease });
      return shell.run({ role: 'agent', text: 'true', args: [] }, limit());
    };
    await server.vanish(asked.name);
    for (const leftMs of [54 * minuteMs, 30 * minuteMs, 4 * minuteMs]) {
      await assert.rejects(use(leftMs), ({ type, loss, message }: SandboxFailure) => {
        assert.deepEqual([type, loss], ['SandboxLost', 'removed']);
        const leftSec = Number(/ (\d+) s before the end of its lease/.exec(message)?.[1]);
        assert.ok(leftSec <= leftMs / 1_000 && leftSec > leftMs / 1_000 - 180, message);
        return true;
      });
    }
    const atEnd = { type: 'SandboxLost', loss: 'deadline', message: /no more, at the end of its lease/ };
    await assert.rejects(use(-1), atEnd);
    await connections.destroy();
  });

  it('is made without network and environment, ends by itself, and of two with one name the younger goes', async () => {
    const asked = spec('raced');
    await provider.ensure(asked, limit());
    const { metadata, ...body } = server.creations.at(-1) as Record<string, unknown>;
    assert.equal((metadata as Record<string, string>)['temper.name'], asked.name);
    const { timeout, ...rest } = body;
    assert.ok(Number(timeout) > 300 && Number(timeout) <= 600, String(timeout));
    assert.deepEqual(rest, {
      templateID: templateNameOf(image),
      allow_internet_access: false,
      network: { allowPublicTraffic: false },
      autoPause: false,
    });
    const [older] = server.ids(asked.name);
    await server.duplicate(asked.name);
    const other = open();
    await other.ensure(asked, limit());
    assert.deepEqual(server.ids(asked.name), [older]);
    await other.close();
  });

  it('is resumed if it was paused by hand, with what ran in it', async () => {
    const asked = spec('paused');
    const sandbox = await provider.ensure(asked, limit());
    await sandbox.start({ key: 'job', account: 'agent', env: {}, argv: sh('sleep 600') }, limit());
    await server.pause(asked.name);
    const again = await open().attach(asked.name);
    assert.deepEqual(await again?.status('job'), { state: 'running' });
    assert.equal(String((await again?.exec({ ...foreground, argv: sh('echo here') }, limit()))?.stdout), 'here\n');
  });
});
