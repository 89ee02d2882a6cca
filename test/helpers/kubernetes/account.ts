import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { RbacAuthorizationV1Api } from '@kubernetes/client-node';
import { openTestCluster } from './namespace.ts';

/** Something that an account may do with a resource. */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

let accounts = 0;

/** Makes an account that has these rights in a namespace and no others, and returns the path of its kubeconfig. */
export async function kubeconfigWithRights(namespace: string, rights: readonly Right[]): Promise<string> {
  const { core, config } = openTestCluster();
  const rbac = config.makeApiClient(RbacAuthorizationV1Api);
  accounts += 1;
  const name = `account-${accounts}`;
  const rules = rights.map(({ group, resource, verbs }) => {
    return { apiGroups: [group], resources: [resource], verbs: [...verbs] };
  });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name };
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name } } });
  await rbac.createNamespacedRole({ namespace, body: { metadata: { name }, rules } });
  await rbac.createNamespacedRoleBinding({ namespace, body: { metadata: { name }, roleRef, subjects } });
  const body = { spec: { audiences: [] } };
  const { status } = await core.createNamespacedServiceAccountToken({ namespace, name, body });
  const home = await mkdtemp(join(tmpdir(), 'temper-account-'));
  after(() => rm(home, { recursive: true }));
  const { server, caData } = config.getCurrentCluster() ?? {};
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': caData } }],
    users: [{ name, user: { token: status?.token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
  await writeFile(join(home, 'kubeconfig'), text, { mode: 0o600 });
  return join(home, 'kubeconfig');
}
