import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, describe, it } from 'node:test';
import { AdmissionregistrationV1Api, NetworkingV1Api } from '@kubernetes/client-node';
import type { SandboxFailure } from '../../../../infra/sandbox/failure.ts';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { kubeconfigWithRights, type Right } from '../../../helpers/kubernetes/account.ts';
import { startApiProxy } from '../../../helpers/kubernetes/api-proxy.ts';
import { programsImage, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { openTestSandboxes } from '../../../helpers/kubernetes/sandboxes.ts';
import { until } from '../../../helpers/until.ts';

const noFiles = { tree: new Map(), at: '/workspace', owner: 'agent' } as const;
const asFailure = (error: SandboxFailure): SandboxFailure => error;
/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);

describe('a cluster that refuses sandboxes', { concurrency: 8 }, async () => {
  const { core, config } = openTestCluster();
  const { namespace, open, specOf } = await openTestSandboxes('refusals');
  const restricted = await testNamespace('restricted', 'restricted');
  const full = await testNamespace('full');
  const [small, ruled] = [await testNamespace('small'), await testNamespace('ruled')];
  const provider = open();
  /** Opens a provider with another kubeconfig. */
  const openAt = async (kubeconfig: string) => {
    const { KUBECONFIG } = process.env;
    process.env.KUBECONFIG = kubeconfig;
    const limited = open();
    const description = await limited.describe();
    process.env.KUBECONFIG = KUBECONFIG;
    return { limited, description };
  };
  /** Opens a provider whose account has these rights alone. */
  const openWith = async (rights: readonly Right[]) => openAt(await kubeconfigWithRights(namespace, rights));
  const policies: Right = { group: 'networking.k8s.io', resource: 'networkpolicies', verbs: ['get', 'create'] };
  const pods: Right = { group: '', resource: 'pods', verbs: ['get', 'list', 'watch', 'create', 'delete'] };
  // One after another and before all tests, since they change the environment.
  const withoutExec = await openWith([policies, pods, { group: '', resource: 'pods/exec', verbs: ['get'] }]);
  const withoutCreate = await openWith([policies, { ...pods, verbs: ['get', 'list'] }]);
  const unknown = await kubeconfigWithRights(namespace, []);
  await writeFile(unknown, (await readFile(unknown, 'utf8')).replace(/"token":"[^"]*"/, '"token":"of-nobody"'));
  const refused = await openAt(unknown);
  /** Opens a provider for which the API server answers so to creations of Pods. */
  const openAnswered = async (status: number, body: object) => {
    const proxy = await startApiProxy(config, ({ method, path }) =>
      method === 'POST' && path.endsWith('/pods') ? { status, body: JSON.stringify(body) } : undefined,
    );
    after(() => proxy.close());
    return openAt(proxy.kubeconfig);
  };
  const invalid = 'Pod "p" is invalid: spec.volumes[0]: Required value: must specify a volume type';
  const spec = { volumes: [{ name: 'programs', emptyDir: {} }], containers: [] };
  const withoutImageVolumes = [
    await openAnswered(422, { kind: 'Status', code: 422, message: invalid }),
    await openAnswered(201, { kind: 'Pod', metadata: { name: 'p' }, spec }),
  ];
  const ruling = 'admission webhook "rules.test" denied the request: no Pods';
  const ofWebhook = await openAnswered(400, { kind: 'Status', code: 400, message: ruling });

  it('names what an account lacks, at the start and at the stage that needs it', async () => {
    assert.equal(withoutExec.description.ready, false);
    assert.match(withoutExec.description.summary, /lacks the rights create pods\/exec;/);
    const silent = withoutExec.limited.ensure(specOf('silent', { files: [noFiles] }), limit());
    await assert.rejects(silent, { type: 'SandboxUnavailable', message: /rights `get` and `create` on `pods\/exec`/ });
    assert.equal(withoutCreate.description.ready, false);
    assert.match(
      withoutCreate.description.summary,
      /lacks the rights watch pods, create pods, delete pods, get pods\/exec/,
    );
    const unmade = withoutCreate.limited.ensure(specOf('unmade'), limit());
    await assert.rejects(unmade, {
      type: 'SandboxUnavailable',
      message: /lacks a right.*cannot create resource "pods"/,
    });
    const kept = withoutCreate.limited.remove('silent');
    await assert.rejects(kept, { type: 'SandboxUnavailable', message: /lacks a right.*cannot delete resource "pods"/ });
  });

  it('names credentials that the cluster does not accept, at the start and at a stage', async () => {
    const message = /does not accept the credentials of this account; renew its kubeconfig \(Unauthorized\)$/;
    assert.partialDeepStrictEqual(refused.description, { ready: false });
    assert.equal(refused.description.mayComeUp, undefined);
    assert.match(refused.description.summary, message);
    const unmade = refused.limited.ensure(specOf('of-nobody'), limit());
    await assert.rejects(unmade, { type: 'SandboxUnavailable', message });
  });

  it('refuses a task whose agent is root by name where the level of Pod Security forbids it', async () => {
    const needs = { task: 'task', image: taskImage, paths: [], filesInImage: true, root: true } as const;
    assert.equal(await provider.supports(needs), undefined);
    const refusal = await open({ namespace: restricted }).supports(needs);
    assert.equal(refusal?.type, 'UnsupportedTask');
    assert.match(
      refusal?.message ?? '',
      /agent of task task .*user = "root".* namespace test-restricted-\S+ forbids; .*baseline \(.*violates PodSecurity/,
    );
  });

  it('names a policy of the cluster that forbids its Pods, and blames no right and no task', async () => {
    const message = (namespace: string, evidence: string) =>
      new RegExp(`a policy of namespace ${namespace} forbids this sandbox; .*${evidence}`);
    const limits = [{ type: 'Container', max: { cpu: '100m' } }];
    await core.createNamespacedLimitRange({
      namespace: small,
      body: { metadata: { name: 'small' }, spec: { limits } },
    });
    const large = open({ namespace: small }).ensure(specOf('large'), limit());
    const tooLarge = message(small, 'maximum cpu usage per Container is 100m');
    await assert.rejects(large, { type: 'SandboxUnavailable', message: tooLarge });

    const admission = config.makeApiClient(AdmissionregistrationV1Api);
    const name = `no-pods-${process.pid}`;
    const metadata = { name };
    const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }];
    const validations = [{ expression: 'false', message: 'no Pods here' }];
    const policy = { metadata, spec: { matchConstraints: { resourceRules }, validations } };
    const matchResources = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': ruled } } };
    const spec = { policyName: name, validationActions: ['Deny'], matchResources };
    await admission.createValidatingAdmissionPolicy({ body: policy });
    after(() => admission.deleteValidatingAdmissionPolicy({ name }));
    await admission.createValidatingAdmissionPolicyBinding({ body: { metadata, spec } });
    after(() => admission.deleteValidatingAdmissionPolicyBinding({ name }));
    const denied = open({ namespace: ruled });
    // The API server applies a new policy after a moment.
    await until(async () => !(await denied.describe()).ready);
    const noPods = message(ruled, 'no Pods here');
    assert.match((await denied.describe()).summary, noPods);
    await assert.rejects(denied.ensure(specOf('denied'), limit()), { type: 'SandboxUnavailable', message: noPods });

    assert.match(ofWebhook.description.summary, message(namespace, 'webhook "rules.test" denied the request'));
  });

  it('refuses a cluster that mounts no images as volumes', () => {
    for (const { description } of withoutImageVolumes) {
      assert.deepEqual([description.ready, description.mayComeUp], [false, undefined]);
      assert.match(description.summary, /mounts no images as volumes, .*Kubernetes 1.35/);
    }
  });

  it('names a NetworkPolicy that was changed so that it allows traffic, and a selector that no node has', async () => {
    const name = 'temper-open';
    const spec = { podSelector: { matchLabels: { 'temper.stack': 'open' } }, policyTypes: ['Ingress'] };
    const body = { metadata: { name }, spec };
    await config.makeApiClient(NetworkingV1Api).createNamespacedNetworkPolicy({ namespace, body });
    const exposed = createKubernetesProvider({ stack: 'open', namespace, programs: programsImage });
    await assert.rejects(exposed.ensure(specOf('exposed'), limit()), {
      type: 'SandboxUnavailable',
      message: /expected the NetworkPolicy temper-open .* to deny all traffic, but it was changed; delete it/,
    });
    await exposed.close();
    const nowhere = open({ scheduleSec: 3, nodeSelector: { 'temper.test/lacks': 'it' } });
    // The scheduler of a busy cluster may say why only after the wait.
    await until(async () => {
      const failure = await nowhere.ensure(specOf('selective'), limit()).then(() => assert.fail('it runs'), asFailure);
      assert.equal(failure.type, 'SandboxUnavailable');
      assert.match(failure.message, /did not run within 3 s; add nodes/);
      return /node affinity\/selector/.test(failure.message);
    });
  });

  it('says that the quota of a namespace is used up', async () => {
    const body = { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } };
    await core.createNamespacedResourceQuota({ namespace: full, body });
    await until(async () => {
      const { status } = await core.readNamespacedResourceQuota({ namespace: full, name: 'none' });
      return status?.hard?.pods === '0';
    });
    const refused = open({ namespace: full }).ensure(specOf('one-too-many'), limit());
    await assert.rejects(refused, { type: 'SandboxUnavailable', message: /quota of namespace .* is used up/ });
  });

  it('names the Pod Security that forbids its Pods, and a namespace that does not exist', async () => {
    const strict = open({ namespace: restricted });
    await assert.rejects(strict.ensure(specOf('forbidden'), limit()), {
      type: 'SandboxUnavailable',
      message: /Pod Security.*baseline/,
    });
    const { ready, mayComeUp, summary } = await strict.describe();
    assert.deepEqual([ready, mayComeUp], [false, undefined]);
    assert.match(summary, /Pod Security of namespace .* forbids sandboxes/);
    const nowhere = open({ namespace: 'no-such-namespace' });
    await assert.rejects(nowhere.ensure(specOf('nowhere'), limit()), {
      type: 'SandboxUnavailable',
      message: /no-such-namespace.*does not exist/,
    });
    assert.partialDeepStrictEqual(await nowhere.describe(), { ready: false, mayComeUp: true });
  });

  it('names a RuntimeClass that the cluster lacks, also before the first sandbox', async () => {
    const kata = open({ runtimeClass: 'no-such-runtime' });
    const message = /no such RuntimeClass.*TEMPER_KUBERNETES_RUNTIME_CLASS/;
    await assert.rejects(kata.ensure(specOf('kata'), limit()), { type: 'SandboxUnavailable', message });
    assert.match((await kata.describe()).summary, message);
    assert.equal((await provider.describe()).ready, true);
  });
});
