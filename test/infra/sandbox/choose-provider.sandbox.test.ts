import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { chooseProvider } from '../../../infra/sandbox/choose-provider.ts';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import type { SandboxKind, SandboxProvider, UnsupportedReason } from '../../../infra/sandbox/sandbox.ts';

const root = mkdtempSync(join(tmpdir(), 'choice-'));
after(() => rmSync(root, { recursive: true, force: true }));

const never = new AbortController().signal;
const needs = { task: 'quixbugs-gcd', image: 'some:image', paths: ['/workspace', '/tests'], filesInImage: false };
const kind = (name: SandboxKind, refusal?: UnsupportedReason): [SandboxKind, SandboxProvider] => {
  const provider = createLocalProvider({ root, stack: 'choice' });
  return [name, { ...provider, kind: name, supports: async () => refusal }];
};
const imageless = { type: 'MissingImage', message: 'no some:image' } as const;

it('prefers docker, and falls back to local if the image is missing', async () => {
  const both = new Map([kind('docker'), kind('local')]);
  assert.equal((await chooseProvider(both, 'auto', needs)).kind, 'docker');
  assert.equal((await chooseProvider(both, 'local', needs)).kind, 'local');
  assert.equal((await chooseProvider(new Map([kind('local')]), 'auto', needs)).kind, 'local');
  const without = new Map([kind('docker', imageless), kind('local')]);
  assert.equal((await chooseProvider(without, 'auto', needs)).kind, 'local');
  await assert.rejects(chooseProvider(without, 'docker', needs), { type: 'MissingImage' });
});

it('says why a kind is not ready', async () => {
  const why = new Map([['docker' as const, 'Docker does not answer']]);
  await assert.rejects(chooseProvider(new Map(), 'docker', needs, why), {
    type: 'SandboxUnavailable',
    message: 'docker sandboxes are not ready on this host: Docker does not answer, for task quixbugs-gcd',
  });
});

it('rejects local sandboxes for a task whose files are in its image, instead of scoring an empty directory', async () => {
  const inImage = { ...needs, filesInImage: true };
  const local = new Map([['local' as const, createLocalProvider({ root, stack: 'choice' })]]);
  await assert.rejects(chooseProvider(local, 'local', inImage), {
    type: 'UnsupportedTask',
    message: /quixbugs-gcd.*some:image, which holds its files/,
  });
  const without = new Map([kind('docker', imageless), ...local]);
  await assert.rejects(chooseProvider(without, 'auto', inImage), {
    type: 'MissingImage',
    message: /no some:image; .*local/,
  });
  // An engine that is temporarily down is not the task's fault.
  await assert.rejects(chooseProvider(local, 'auto', inImage), {
    type: 'SandboxUnavailable',
    message: /docker.*local/,
  });
});

it('rejects kinds that run nothing beside a sandbox for a task with services, by their names', async () => {
  const [name, docker] = kind('docker');
  const both = new Map([[name, { ...docker, runsServices: true as const }], kind('local')]);
  const withServices = { ...needs, services: ['db', 'cache'] };
  assert.equal((await chooseProvider(both, 'auto', withServices)).kind, 'docker');
  await assert.rejects(chooseProvider(both, 'local', withServices), {
    type: 'UnsupportedTask',
    message: /quixbugs-gcd has services .*\(db, cache\), which local sandboxes cannot run; use a host with Docker/,
  });
  assert.equal((await chooseProvider(both, 'local', { ...needs, services: [] })).kind, 'local');
});

it('rejects a kind that ends its sandboxes before the rollout has, and takes another', async () => {
  const [name, docker] = kind('docker');
  const limited = new Map([[name, { ...docker, longestLifetimeMs: 3_600_000 }], kind('local')]);
  const chosen = (lifetimeMs: number, choice: 'auto' | 'docker') =>
    chooseProvider(limited, choice, { ...needs, lifetimeMs }).then((provider) => provider.kind);
  assert.equal(await chosen(3_600_000, 'docker'), 'docker');
  assert.equal(await chosen(3_600_001, 'auto'), 'local');
  const message =
    /quixbugs-gcd needs a sandbox for 5400 s .*docker sandboxes live for 3600 s at most; lower agentTimeoutSec/;
  await assert.rejects(chosen(5_400_000, 'docker'), { type: 'UnsupportedTask', message });
});

it('names the kind that is not ready and the task', async () => {
  const message = /docker.*quixbugs-gcd/s;
  await assert.rejects(chooseProvider(new Map([kind('local')]), 'docker', needs), {
    type: 'SandboxUnavailable',
    message,
  });
  await assert.rejects(chooseProvider(new Map(), 'auto', needs), { type: 'SandboxUnavailable' });
});

it('rejects tasks by name if no confinement works', async () => {
  const provider = createLocalProvider({ root, stack: 'none', confinement: { reasons: ['bwrap: no permission'] } });
  const refusal = await provider.supports(needs);
  assert.equal(refusal?.type, 'UnsupportedTask');
  assert.match(refusal?.message ?? '', /quixbugs-gcd.*\/workspace and \/tests.*bwrap: no permission/);
  const description = await provider.describe();
  assert.equal(description.ready, false);
  const labels = { stack: 'none', run: '', rollout: '', epoch: 0, purpose: 'agent' as const, expiresAtMs: 0 };
  const limits = { cpus: 1, memoryMb: 64, diskMb: 64, pids: 16, workdir: '/workspace', mounts: [] };
  const ensured = provider.ensure({ name: 'refused', image: '', labels, ...limits }, never);
  await assert.rejects(ensured, { type: 'UnsupportedTask' });
});

it('reports a failed set-up as a failure of the host, not as an exit of the command', async () => {
  const provider = createLocalProvider({ root, stack: 'set-up' });
  const labels = { stack: 'set-up', run: '', rollout: '', epoch: 0, purpose: 'agent' as const, expiresAtMs: 0 };
  const limits = { cpus: 1, memoryMb: 64, diskMb: 64, pids: 16, workdir: '/workspace' };
  const mounts = [{ source: join(root, 'absent'), target: '/runtime', readOnly: true as const }];
  const sandbox = await provider.ensure({ name: 'mountless', image: '', labels, ...limits, mounts }, never);
  const command = { argv: ['true'] as [string], env: {}, account: 'agent' as const };
  const failure = { type: 'Internal', message: /set-up.*absent/ };
  await assert.rejects(sandbox.exec({ ...command, timeoutMs: 60_000, maxOutputBytes: 1_000 }, never), failure);
  await sandbox.start({ ...command, key: 'job' }, never);
  await assert.rejects(sandbox.wait('job', { timeoutMs: 60_000 }, never), failure);
  await provider.remove(sandbox.name);
});
