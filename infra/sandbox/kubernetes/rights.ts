import { SandboxFailure } from '../failure.ts';
import { apiMessage, apiStatus, type Cluster, callApi } from './client.ts';
import { labelValue, stackLabel } from './pod.ts';

/** The rights of a host in its namespace. Exec over a WebSocket needs two rights. */
const needed = [
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
] as const;

/** Returns the rights that this account lacks in the namespace, such as `create pods/exec`. */
export async function missingRights({ authorization, namespace }: Cluster): Promise<readonly string[]> {
  const answers = await Promise.all(
    needed.map(async ({ verb, resource, subresource, group }) => {
      const resourceAttributes = { namespace, verb, resource, subresource, group };
      const body = { spec: { resourceAttributes } };
      const { status } = await callApi(() => authorization.createSelfSubjectAccessReview({ body }));
      return status?.allowed === true ? [] : [`${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`];
    }),
  );
  return answers.flat();
}

/** Denies all traffic of a stack's Pods. A Pod is only made once this policy exists. */
export async function ensureNoNetwork({ networking, namespace }: Cluster, stack: string): Promise<void> {
  const value = labelValue(stack);
  const name = `temper-${value.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-')}`.replaceAll(/-+$/g, '');
  const body = {
    metadata: { name, labels: { [stackLabel]: value } },
    spec: { podSelector: { matchLabels: { [stackLabel]: value } }, policyTypes: ['Ingress', 'Egress'] },
  };
  await callApi(() => networking.createNamespacedNetworkPolicy({ namespace, body })).catch((error: unknown) => {
    if (apiStatus(error) !== 409) throw refused(namespace, error);
  });
  const { spec } = await callApi(() => networking.readNamespacedNetworkPolicy({ namespace, name }));
  const denies =
    spec?.podSelector?.matchLabels?.[stackLabel] === value &&
    (spec.ingress ?? []).length === 0 &&
    (spec.egress ?? []).length === 0 &&
    ['Ingress', 'Egress'].every((type) => spec.policyTypes?.includes(type));
  if (denies) return;
  const text = `expected the NetworkPolicy ${name} in namespace ${namespace} to deny all traffic, but it was changed; delete it`;
  throw new SandboxFailure('SandboxUnavailable', text);
}

/** Explains why the API server refuses to create an object. */
export function refused(namespace: string, error: unknown): unknown {
  const evidence = apiMessage(error);
  const fail = (text: string): SandboxFailure =>
    new SandboxFailure('SandboxUnavailable', text, { cause: error, evidence });
  if (apiStatus(error) === 404) return fail(`the namespace ${namespace} does not exist; create it with kubectl`);
  if (apiStatus(error) !== 403) return error;
  if (/exceeded quota/i.test(evidence)) {
    return fail(`the quota of namespace ${namespace} is used up; it is tried again, or raise the ResourceQuota`);
  }
  if (/violates PodSecurity/i.test(evidence)) {
    return fail(
      `the Pod Security of namespace ${namespace} forbids sandboxes; label it pod-security.kubernetes.io/enforce=baseline`,
    );
  }
  if (/unable to create new content .* being terminated/i.test(evidence)) {
    return fail(`the namespace ${namespace} is being deleted; use another`);
  }
  return fail(
    `this account may not create what sandboxes need in namespace ${namespace}; give it the rights in the evidence`,
  );
}
