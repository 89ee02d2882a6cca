import type { SandboxSpec } from '../../../infra/sandbox/sandbox.ts';

/** Describes a small sandbox of an agent, in the image of the tests. */
export const agentSpec = (stack: string, name: string, changes: Partial<SandboxSpec> = {}): SandboxSpec => ({
  name,
  image: 'temper-tasks:bookworm',
  labels: { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs: Date.now() + 600_000 },
  cpus: 1,
  memoryMb: 256,
  diskMb: 64,
  pids: 64,
  workdir: '/workspace',
  mounts: [],
  ...changes,
});
