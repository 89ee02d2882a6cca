import { after } from 'node:test';
import { createKubernetesProvider } from '../../../infra/sandbox/kubernetes/provider.ts';
import type { KubernetesSettings } from '../../../infra/sandbox/kubernetes/settings.ts';
import type { SandboxProvider, SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import { programsImage, taskImage } from './cluster.ts';
import { testNamespace } from './namespace.ts';

/** Small sandboxes in a namespace of their own, which is deleted after the tests of this file. */
export interface TestSandboxes {
  readonly namespace: string;
  readonly settings: Pick<KubernetesSettings, 'namespace' | 'programs' | 'requests'> & { readonly stack: string };
  /** Opens a provider that is closed after the tests of this file. */
  open(changes?: Partial<KubernetesSettings>): SandboxProvider;
  specOf(name: string, changes?: Partial<SandboxSpec>): SandboxSpec;
}

export async function openTestSandboxes(purpose: string): Promise<TestSandboxes> {
  const namespace = await testNamespace(purpose);
  const stack = `${purpose}-${process.pid}`;
  const settings = { stack, namespace, programs: programsImage, requests: 0.01 };
  return {
    namespace,
    settings,
    open(changes = {}) {
      const provider = createKubernetesProvider({ ...settings, ...changes });
      after(() => provider.close());
      return provider;
    },
    specOf(name, changes = {}) {
      const expiresAtMs = Date.now() + 600_000;
      const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
      const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
      return { name, image: taskImage, labels, ...limits, workdir: '/workspace', mounts: [], ...changes };
    },
  };
}
