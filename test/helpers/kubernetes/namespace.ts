import { PassThrough } from 'node:stream';
import { after } from 'node:test';
import { ApiException, CoreV1Api, Exec, KubeConfig } from '@kubernetes/client-node';
import { podName } from '../../../infra/sandbox/kubernetes/pod.ts';
import { until } from '../until.ts';

/** The level of Pod Security that a namespace enforces. */
export type PodSecurity = 'baseline' | 'restricted';

/** Opens the cluster that KUBECONFIG names. */
export function openTestCluster(): { readonly config: KubeConfig; readonly core: CoreV1Api } {
  const config = new KubeConfig();
  config.loadFromDefault();
  return { config, core: config.makeApiClient(CoreV1Api) };
}

/** Creates a namespace that is deleted after the tests of this file, and returns its name. */
export async function testNamespace(purpose: string, security: PodSecurity = 'baseline'): Promise<string> {
  const { core } = openTestCluster();
  const name = `test-${purpose}-${process.pid}-${Date.now().toString(36)}`;
  await createTestNamespace(name, security);
  after(() => core.deleteNamespace({ name }));
  return name;
}

export async function createTestNamespace(name: string, security: PodSecurity = 'baseline'): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': security };
  const { core } = openTestCluster();
  await until(() =>
    core.createNamespace({ body: { metadata: { name, labels } } }).then(
      () => true,
      // The API server of a cluster that has just begun may not accept a connection in time, or may have made it.
      (error: unknown) => {
        if (error instanceof ApiException && error.code === 409) return true;
        if (error instanceof ApiException) throw error;
        return false;
      },
    ),
  );
  // The cluster takes no Pod before it has made this account.
  await until(() =>
    core.readNamespacedServiceAccount({ namespace: name, name: 'default' }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof ApiException && error.code !== 404) throw error;
        return false;
      },
    ),
  );
}

/** Runs a shell script as root in the Pod of a sandbox, past temper. */
export async function execInPod(namespace: string, sandbox: string, script: string): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const words = ['sh', '-c', script];
  const out = new PassThrough().resume();
  const exec = new Exec(openTestCluster().config);
  await exec.exec(namespace, podName(sandbox), 'sandbox', words, out, out, null, false, () => ended.resolve());
  await ended.promise;
}
