import { SandboxFailure } from '../failure.ts';
import { apiStatus, callApi, orIfMissing, unmade } from './answers.ts';
import type { Cluster } from './client.ts';
import { labelValue, stackLabel } from './pod.ts';

interface Right {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly group: string;
}

/** The rights of a host in its namespace. Exec over a WebSocket needs two rights. */
export const neededRights: readonly Right[] = [
  ...['get', 'list', 'watch', 'create', 'delete'].map((verb) => ({
    verb,
    resource: 'pods',
    subresource: '',
    group: '',
  })),
  ...['get', 'create'].map((verb) => ({ verb, resource: 'pods', subresource: 'exec', group: '' })),
  ...['get', 'create'].map((verb) => {
    return { verb, resource: 'networkpolicies', subresource: '', group: 'networking.k8s.io' };
  }),
];

/** The rights that show what a Pod waits for, without which sandboxes work all the same. */
export const progressRights: readonly Right[] = [{ verb: 'list', resource: 'events', subresource: '', group: '' }];

/** Returns those of some rights that this account lacks in the namespace, such as `create pods/exec`. */
export async function missingRights(
  { authorization, namespace }: Cluster,
  rights: readonly Right[],
): Promise<readonly string[]> {
  const missing: string[] = [];
  // One after another: the server ends a connection whose credentials it refuses, with all other requests on it.
  for (const { verb, resource, subresource, group } of rights) {
    const resourceAttributes = { namespace, verb, resource, subresource, group };
    const body = { spec: { resourceAttributes } };
    const { status } = await callApi(namespace, () => authorization.createSelfSubjectAccessReview({ body }));
    if (status?.allowed !== true) missing.push(`${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`);
  }
  return missing;
}

/** Denies all traffic of a stack's Pods, and makes sure of it before each Pod: it may have lost the policy with its namespace. */
export async function ensureNoNetwork({ networking, namespace }: Cluster, stack: string): Promise<void> {
  const value = labelValue(stack);
  const name = `temper-${value.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-')}`.replaceAll(/-+$/g, '');
  const body = {
    metadata: { name, labels: { [stackLabel]: value } },
    spec: { podSelector: { matchLabels: { [stackLabel]: value } }, policyTypes: ['Ingress', 'Egress'] },
  };
  const read = () => callApi(namespace, () => networking.readNamespacedNetworkPolicy({ namespace, name }));
  const create = () =>
    callApi(namespace, () => networking.createNamespacedNetworkPolicy({ namespace, body })).catch((error: unknown) => {
      if (apiStatus(error) === 409) return read(); // another host was faster
      throw unmade(namespace, error);
    });
  const { spec } = (await read().catch(orIfMissing)) ?? (await create());
  const denies =
    spec?.podSelector?.matchLabels?.[stackLabel] === value &&
    (spec.ingress ?? []).length === 0 &&
    (spec.egress ?? []).length === 0 &&
    ['Ingress', 'Egress'].every((type) => spec.policyTypes?.includes(type));
  if (denies) return;
  const text = `expected the NetworkPolicy ${name} in namespace ${namespace} to deny all traffic, but it was changed; delete it`;
  throw new SandboxFailure('SandboxUnavailable', text);
}
