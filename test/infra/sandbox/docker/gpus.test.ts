import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readMountPoints } from '../../../../infra/sandbox/docker/device-mounts.ts';
import { chooseGpus, gpuFailure } from '../../../../infra/sandbox/docker/gpus.ts';

/** The names that `nvidia-ctk cdi generate` gives the GPUs of a host, with devices of other kinds. */
const listed = (...names: readonly string[]) => [
  'vendor.example/net=eth0',
  ...names.map((name) => `nvidia.com/gpu=${name}`),
];
const facts = { runtimes: ['runc'], devices: [], hasHook: false } as const;
const likeDocker = (gpus: number) => ({ request: { Driver: '', Count: gpus, Capabilities: [['gpu']] } });

describe('the way to the GPUs of a Docker host', () => {
  it('is CDI if the daemon lists enough GPUs, in the order of their numbers', () => {
    const devices = listed('10', '2', 'GPU-5d1f', 'all', '1');
    const request = { Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=1', 'nvidia.com/gpu=2'] };
    assert.deepEqual(chooseGpus({ ...facts, devices }, 2), { request });
    assert.deepEqual(chooseGpus({ runtimes: ['runc', 'nvidia'], devices, hasHook: true }, 2), { request });
  });

  it("is that of `docker run --gpus` with NVIDIA's runtime or hook, if the daemon lists no whole GPU", () => {
    assert.deepEqual(chooseGpus({ ...facts, runtimes: ['nvidia', 'runc'] }, 3), likeDocker(3));
    assert.deepEqual(chooseGpus({ ...facts, hasHook: true }, 1), likeDocker(1));
    assert.deepEqual(chooseGpus({ ...facts, devices: listed('all', '0:1'), hasHook: true }, 1), likeDocker(1));
  });

  it('is missing on other hosts, and the refusal says what is there and what to do', () => {
    const refusal = (devices: readonly string[], gpus: number): string => {
      const choice = chooseGpus({ ...facts, devices }, gpus);
      return 'refusal' in choice ? choice.refusal : assert.fail('expected a refusal');
    };
    assert.match(refusal([], 1), /lists no whole GPU and no runtime nvidia, .*; install NVIDIA's container toolkit/);
    assert.match(refusal(listed('0:0', 'all'), 1), /no whole GPU \(only nvidia\.com\/gpu=0:0, nvidia\.com\/gpu=all\)/);
    assert.match(
      refusal(listed('0', '1', 'all'), 3),
      /lists only nvidia\.com\/gpu=0, nvidia\.com\/gpu=1; use a host with more GPUs$/,
    );
  });
});

it("says that a container did not start because of its GPUs, in the daemon's words", () => {
  const answer = (statusCode: number, message: string) =>
    gpuFailure(Object.assign(new Error(message), { statusCode }), 's');
  for (const message of [
    'could not select device driver "" with capabilities: [[gpu]]',
    'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0',
    'error running prestart hook #0: nvidia-container-cli: device error: 3: unknown device',
  ]) {
    const failure = answer(500, message);
    assert.deepEqual([failure?.type, failure?.evidence], ['SandboxUnavailable', message]);
  }
  assert.equal(answer(500, 'no space left on device'), undefined);
  assert.equal(gpuFailure(new Error('nvidia'), 's'), undefined, 'no answer of the daemon');
});

it('reads mount points with blanks in their names, without the root', () => {
  const text = '/\n/proc\n/usr/lib/lib\\040cuda\\134.so\n\n';
  assert.deepEqual(readMountPoints(text), ['/proc', '/usr/lib/lib cuda\\.so']);
});
