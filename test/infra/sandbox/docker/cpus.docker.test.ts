import assert from 'node:assert/strict';
import { it } from 'node:test';
import Docker from 'dockerode';
import { providerFor } from '../../../../infra/sandbox/choose-provider.ts';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';

const provider = createDockerProvider({ stack: `cpus-${process.pid}` });
const image = 'temper-tasks:bookworm';
const limits = { memoryMb: 512, diskMb: 256 };

it('refuses a task whose sandbox, tests or service may use more CPUs than the daemon has', async () => {
  const { NCPU: most } = await new Docker().info();
  const choose = (cpus: { own?: number; tests?: number; service?: number }) => {
    const { own = 1, tests = 1, service = 1 } = cpus;
    const task = {
      id: 'parallel',
      image,
      workdir: '/workspace',
      cpus: own,
      services: [{ name: 'db', cpus: service, memoryMb: 64 }],
      testSandbox: { image, workdir: '/workspace', cpus: tests, ...limits },
    };
    return providerFor(new Map([['docker', provider]]), 'docker', task, { filesInImage: true });
  };
  assert.equal(await choose({ own: most, tests: most, service: most }), provider);
  const message = `task parallel asks for ${most + 1} CPUs in one container, and the Docker daemon of this host has ${most}; use a host with more, or lower the limit`;
  for (const name of ['own', 'tests', 'service']) {
    await assert.rejects(choose({ [name]: most + 1 }), { type: 'UnsupportedTask', message });
  }
});
