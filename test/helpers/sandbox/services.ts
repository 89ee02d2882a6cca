import assert from 'node:assert/strict';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import type { SandboxService } from '../../../infra/sandbox/service.ts';

const image = 'temper-tasks:bookworm';

/** Returns a command that asks for an address, and prints the status of the answer. */
export const url = (address: string): string =>
  `python3 -c 'import urllib.request as r; print(r.urlopen("${address}").status)'`;

/** Describes a service of the usual image. */
export const service = (name: string, settings: Partial<SandboxService>): SandboxService => ({
  name,
  aliases: [],
  image,
  entrypoint: null,
  command: null,
  workdir: null,
  user: null,
  env: {},
  healthCheck: null,
  dependsOn: [],
  files: [],
  volumes: [],
  tmpfs: [],
  restarts: false,
  tty: false,
  stdin: false,
  init: false,
  dropped: [],
  ulimits: [],
  cpus: 1,
  memoryMb: 128,
  sharedMemoryMb: 64,
  ...settings,
});

/** Creates sandboxes with services for one file of tests. All share the volume `shared`. */
export function createServiceSandboxes(stack: string) {
  const docker = new Docker();
  const provider = createDockerProvider({ stack });
  const made = new Set<string>();
  const specOf = (name: string, services: readonly SandboxService[]): SandboxSpec => {
    made.add(`${stack}-${name}`);
    return {
      name: `${stack}-${name}`,
      image,
      labels: { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs: Date.now() + 600_000 },
      cpus: 1,
      memoryMb: 256,
      diskMb: 64,
      pids: 64,
      workdir: '/workspace',
      mounts: [],
      beside: { services, names: ['main'], volumes: [{ name: 'shared', target: '/seen', readOnly: true }] },
    };
  };
  const own = async () => {
    const filters = { label: [`temper.stack=${stack}`] };
    const containers = await docker.listContainers({ all: true, filters });
    const { Volumes } = await docker.listVolumes({ filters: JSON.stringify(filters) });
    return [...containers.map(({ Names }) => Names[0]), ...(Volumes ?? []).map(({ Name }) => Name)];
  };
  return {
    docker,
    provider,
    specOf,
    own,
    /** Removes all of them, and says if anything is left. */
    async close(): Promise<void> {
      for (const name of made) await provider.remove(name);
      assert.deepEqual(await own(), []);
    },
  };
}
