import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import { chooseProvider } from '../../../../infra/sandbox/index.ts';
import type { SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import { sandboxSpec } from '../../../../infra/sandbox/sandbox-request.ts';

const docker = new Docker();
const image = 'temper-tasks:bookworm';
const stack = `gpus-${process.pid}`;
const name = `${stack}-sandbox`;
const task = { id: 'trained', cpus: 1, memoryMb: 256, diskMb: 256, workdir: '/workspace', gpus: 2 } as const;
let provider: SandboxProvider;

before(() => {
  provider = createDockerProvider({ stack });
});
after(() => provider.remove(name));

const hasGpus = async (): Promise<boolean> => 'nvidia' in ((await docker.info()).Runtimes ?? {});

it('asks the daemon for the GPUs of a task, as docker run --gpus does', async () => {
  const epoch = { rollout: 'gpus', epoch: 1 };
  const common = {
    run: '',
    purpose: 'agent',
    sweep: false,
    mounts: [],
    gatewayDir: null,
    files: [],
    beside: null,
  } as const;
  const request = { name, epoch, task, image, expiresAtMs: Date.now() + 60_000, ...common };
  const spec = sandboxSpec({ stack, fence: () => null }, request);
  const failure = await provider.ensure(spec, AbortSignal.timeout(60_000)).then(
    () => null,
    (error: unknown) => error,
  );
  const { HostConfig } = await docker.getContainer(name).inspect();
  const [asked] = HostConfig.DeviceRequests ?? [];
  assert.deepEqual([asked?.Count, asked?.Capabilities], [2, [['gpu']]]);
  if (await hasGpus()) return;
  assert.match(
    String(failure),
    /could not select device driver|gpu/i,
    'a host without GPUs starts nothing without them',
  );
});

it('refuses a task with GPUs by name where the daemon cannot pass them through', async () => {
  const needs = { task: task.id, paths: [], image, filesInImage: true, gpus: 2 };
  const choose = (kind: 'docker' | 'local', one: SandboxProvider) =>
    chooseProvider(new Map([[kind, one]]), kind, needs);
  if (!(await hasGpus())) {
    await assert.rejects(choose('docker', provider), {
      type: 'UnsupportedTask',
      message:
        /task trained needs GPUs \(environment\.gpus = 2\), and the Docker daemon of this host has no runtime nvidia/,
    });
  }
  const { givesGpus: _, ...without } = provider;
  await assert.rejects(choose('local', { ...without, kind: 'local' }), {
    type: 'UnsupportedTask',
    message: /which local sandboxes do not have; use a host with Docker and GPUs/,
  });
  assert.equal(await chooseProvider(new Map([['docker', provider]]), 'docker', { ...needs, gpus: 0 }), provider);
});
