import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { serviceOptions } from '../../../../infra/sandbox/docker/service-options.ts';
import { fileAt, readableFile, type SandboxService } from '../../../../infra/sandbox/service.ts';
import { createServiceSandboxes, service, url } from '../../../helpers/sandbox/services.ts';
import { until } from '../../../helpers/until.ts';

describe('services beside a docker sandbox that do not do as they should', () => {
  const sandboxes = createServiceSandboxes(`failing-services-${process.pid}`);
  const { docker, provider, specOf } = sandboxes;
  const { signal } = new AbortController();
  after(() => sandboxes.close());

  it('fail the set-up of the task with the end of their logs', async () => {
    const cases: readonly (readonly [string, Partial<SandboxService>, RegExp])[] = [
      [
        'ended',
        { command: ['sh', '-c', 'echo the port is taken; exit 3'] },
        /the service db of the task ended with exit code 3; the end of its log: the port is taken$/,
      ],
      [
        'unhealthy',
        {
          command: ['sh', '-c', 'echo waits; sleep 1000'],
          healthCheck: { test: ['CMD', 'false'], intervalMs: 100, retries: 2 },
        },
        /is unhealthy; the end of its log: waits$/,
      ],
      ['no-program', { command: ['/no/such/program'] }, /the service db of the task did not start: .*no such file/],
      [
        'taken',
        {
          command: ['python3', '-m', 'http.server', '8118'],
          healthCheck: { test: ['CMD-SHELL', url('http://db:8118')], intervalMs: 100, retries: 100 },
        },
        /a service of the task listens on port 8118/,
      ],
      ['no-account', { user: 'nobody-else', command: ['true'] }, /did not start: .*unable to find user nobody-else/],
      [
        'no-directory',
        { workdir: '/etc/passwd', command: ['true'] },
        /did not start: .*\/etc\/passwd is not a directory/,
      ],
      [
        'no-place',
        { files: [fileAt('/etc', readableFile('a file'))], command: ['true'] },
        /the service db of the task did not start: .*directory/,
      ],
      ['no-limit', { cpus: 4096, command: ['true'] }, /did not start: .*CPUs available/],
      ['memory', { command: ['python3', '-c', 'bytearray(10**9)'], memoryMb: 32 }, /ended with exit code 137/],
    ];
    const failures = cases.map(async ([name, settings, message]) => {
      const beside = [
        service('db', settings),
        service('waits', {
          command: ['sleep', '1000'],
          dependsOn: [{ service: 'db', until: name === 'taken' ? 'healthy' : 'completed' }],
        }),
      ];
      await assert.rejects(provider.ensure(specOf(name, beside), signal), { type: 'SetupFailed', message });
    });
    await Promise.all(failures);
  });

  it('count against the disk of their sandbox with all that they write, also in volumes', async () => {
    const filler = service('filler', {
      command: [
        'sh',
        '-c',
        'head -c 20M /dev/zero >/filled; head -c 30M /dev/zero >/kept/filled; touch /done; sleep 1000',
      ],
      healthCheck: { test: ['CMD', 'test', '-e', '/done'], intervalMs: 100, retries: 100 },
      volumes: [{ name: null, target: '/kept', readOnly: false }],
    });
    const sandbox = await provider.ensure(specOf('disk', [filler]), signal);
    const { usedMb } = await sandbox.diskUsage();
    assert.ok(usedMb >= 50, `${usedMb} MB`);
  });

  it('fail the set-up of the task if they fill the disk while they start', async () => {
    const filler = service('filler', {
      command: ['sh', '-c', 'head -c 90M /dev/zero >/kept/filled; sleep 1000'],
      healthCheck: { test: ['CMD', 'false'], retries: 10_000 },
      volumes: [{ name: null, target: '/kept', readOnly: false }],
    });
    const message = /the services of the task wrote \d+ MB of disk before they were ready, more than the 64 MB/;
    await assert.rejects(provider.ensure(specOf('full', [filler]), signal), { type: 'SetupFailed', message });
  });

  it('are checked at most once a second, whatever the task or their image asks for', async (t) => {
    const made = await docker.createContainer({ Image: service('x', {}).image });
    const changes = 'HEALTHCHECK --interval=1ms CMD true';
    const { Id: image } = await made.commit({ changes });
    t.after(() => docker.getImage(image).remove());
    await made.remove();
    const command = ['sleep', '1000'];
    const fast = service('fast', { command, healthCheck: { test: ['CMD', 'true'], intervalMs: 1 } });
    const slow = service('slow', { command, healthCheck: { test: ['CMD', 'true'], intervalMs: 1_500 } });
    const spec = specOf('checked', [fast, slow, service('by-image', { command, image })]);
    const { name } = await provider.ensure(spec, signal);
    const checkOf = async (one: string) => (await docker.getContainer(`${name}.${one}`).inspect()).Config.Healthcheck;
    assert.equal((await checkOf('fast'))?.Interval, 1e9);
    assert.equal((await checkOf('slow'))?.Interval, 1.5e9);
    const { Test, Interval } = (await checkOf('by-image')) ?? {};
    assert.deepEqual([Test, Interval], [['CMD-SHELL', 'true'], 1e9]);
    // Older daemons know no interval of the start.
    const { beside } = spec;
    assert.ok(beside !== undefined);
    const asked = serviceOptions({ id: 'x', spec: { ...spec, beside }, variables: [], runtime: '' }, slow, {
      StartInterval: 1e6,
    });
    assert.deepEqual(asked.Healthcheck, { Test: ['CMD', 'true'], Interval: 1.5e9, StartInterval: 1e9 });
    await provider.remove(name);
  });

  it('are lost with their sandbox, and not the fault of the task, if they are ended from outside', async () => {
    const never = service('never', {
      command: ['sleep', '1000'],
      healthCheck: { test: ['CMD', 'false'], intervalMs: 100, retries: 10_000 },
    });
    const spec = specOf('ended-outside', [never]);
    const ensuring = provider.ensure(spec, signal).then(
      () => assert.fail('the service was never healthy'),
      (error: unknown) => error,
    );
    const container = docker.getContainer(`${spec.name}.never`);
    await until(async () => (await container.inspect().catch(() => undefined))?.State.Running === true);
    await container.kill();
    assert.match(String(await ensuring), /SandboxFailure: .*ended-outside\.never no longer runs: .*kill signal 9/);
  });
});
