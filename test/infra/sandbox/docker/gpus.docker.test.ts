import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import Docker from 'dockerode';
import { chooseProvider } from '../../../../infra/sandbox/choose-provider.ts';
import { findGpus } from '../../../../infra/sandbox/docker/gpus.ts';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { sandboxSpec } from '../../../../infra/sandbox/sandbox-request.ts';
import { foreground, sh } from '../contract.ts';

const docker = new Docker();
const image = 'temper-tasks:bookworm';
const stack = `gpus-${process.pid}`;
const provider = createDockerProvider({ stack });
const task = { id: 'trained', cpus: 1, memoryMb: 512, diskMb: 256, workdir: '/workspace' } as const;
const made: string[] = [];

after(() => Promise.all(made.map((name) => provider.remove(name))));

/** Makes a sandbox as a rollout does. */
async function make(name: string, gpus: number): Promise<Sandbox> {
  const full = `${stack}-${name}`;
  made.push(full);
  const request = {
    name: full,
    epoch: { rollout: name, epoch: 1 },
    task: gpus > 0 ? { ...task, gpus } : task,
    image,
    expiresAtMs: Date.now() + 120_000,
    run: '',
    purpose: 'agent',
    sweep: false,
    mounts: [],
    gatewayDir: null,
    files: [],
    beside: null,
  } as const;
  return provider.ensure(sandboxSpec({ stack, fence: () => null }, request), AbortSignal.timeout(60_000));
}

/** Runs a script as the agent. */
async function run(sandbox: Sandbox, script: string): Promise<string> {
  const argv = sh(`exec 2>&1; ${script}`);
  const { stdout } = await sandbox.exec({ ...foreground, argv }, AbortSignal.timeout(60_000));
  return stdout.toString();
}

const needs = { task: task.id, paths: [], image, filesInImage: true, gpus: 1 };
const choose = (kind: 'docker' | 'local', one = provider, gpus = 1) =>
  chooseProvider(new Map([[kind, one]]), kind, { ...needs, gpus });

it('gives an agent the GPUs of its task, or refuses the task by name where the host has none', async (t) => {
  if ('request' in (await findGpus(docker, { count: 1 }))) {
    assert.equal(await choose('docker'), provider);
    t.diagnostic(await checkGpu());
    await checkChanges();
    return;
  }
  const message = /task trained needs GPUs \(environment\.gpus = 1\), and the Docker daemon of this host lists no/;
  await assert.rejects(choose('docker'), { type: 'UnsupportedTask', message });
  await assert.rejects(make('refused', 1), {
    type: 'SandboxUnavailable',
    message: /and the Docker daemon of this host/,
  });
});

/** Checks that one sandbox has a GPU and another has none, and returns what the agent sees of it. */
async function checkGpu(): Promise<string> {
  const [has, hasNot] = await Promise.all([make('with', 1), make('without', 0)]);
  const seen = await run(has, 'id -u; nvidia-smi -L; ls /dev | grep ^nvidia');
  assert.match(seen, /^[1-9]\d*\nGPU 0: .+\n(.*\n)*nvidia0\n/);
  assert.doesNotMatch(seen, /GPU 1/);
  assert.match(await run(hasNot, 'nvidia-smi; ls /dev | grep ^nvidia; echo end'), /nvidia-smi: not found\nend\n$/);
  return seen;
}

/** Checks that the changes of an agent with a GPU are carried, without the files of the driver. */
async function checkChanges(): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  const [agents, other] = await Promise.all([make('changed', 1), make('carried', 1)]);
  await run(agents, 'echo weights >/tmp/model');
  const { entries, ...read } = (await agents.changes?.read([], signal)) ?? assert.fail();
  assert.ok(!read.added.some((path) => path.endsWith('/nvidia-smi')), read.added.join('\n'));
  assert.equal(await other.changes?.write({ ...read, entries: entries() }, signal), null);
  assert.match(await run(other, 'cat /tmp/model; nvidia-smi -L'), /^weights\nGPU 0: /);
  assert.deepEqual(await agents.changes?.changedPrograms(), []);
}

it('refuses a task with GPUs by name in sandboxes that have none', async () => {
  const { givesGpus: _, ...without } = provider;
  await assert.rejects(choose('local', { ...without, kind: 'local' }), {
    type: 'UnsupportedTask',
    message: /which local sandboxes do not have; use a host with Docker and GPUs/,
  });
  assert.equal(await choose('docker', provider, 0), provider);
});
