import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { PatchStrategy, SchedulingV1Api, setHeaderOptions } from '@kubernetes/client-node';
import { describePod } from '../../../../infra/sandbox/kubernetes/pod.ts';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { defaultKubernetesSettings, type KubernetesSettings } from '../../../../infra/sandbox/kubernetes/settings.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { kubeconfigWithRights, type Right } from '../../../helpers/kubernetes/account.ts';
import { programsImage, startRegistry, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const noFiles = { tree: new Map(), at: '/workspace', owner: 'agent' } as const;
const signal = AbortSignal.timeout(300_000);

describe('a failure of a kubernetes sandbox', { concurrency: 8 }, async () => {
  const { core, config } = openTestCluster();
  const scheduling = config.makeApiClient(SchedulingV1Api);
  const namespace = await testNamespace('failures');
  const restricted = await testNamespace('restricted', 'restricted');
  const full = await testNamespace('full');
  const stack = `failures-${process.pid}`;
  const open = (changes: Partial<KubernetesSettings> = {}) => {
    const provider = createKubernetesProvider({
      stack,
      namespace,
      programs: programsImage,
      requests: 0.01,
      ...changes,
    });
    after(() => provider.close());
    return provider;
  };
  const provider = open();
  /** Opens a provider whose account has these rights alone. */
  const openWith = async (rights: readonly Right[]) => {
    const { KUBECONFIG } = process.env;
    process.env.KUBECONFIG = await kubeconfigWithRights(namespace, rights);
    const limited = open();
    const description = await limited.describe();
    process.env.KUBECONFIG = KUBECONFIG;
    return { limited, description };
  };
  const policies: Right = { group: 'networking.k8s.io', resource: 'networkpolicies', verbs: ['get', 'create'] };
  const pods: Right = { group: '', resource: 'pods', verbs: ['get', 'list', 'watch', 'create', 'delete'] };
  // One after another and before all tests, since they change the environment.
  const withoutExec = await openWith([policies, pods, { group: '', resource: 'pods/exec', verbs: ['get'] }]);
  const withoutCreate = await openWith([policies, { ...pods, verbs: ['get', 'list'] }]);
  const specOf = (name: string, changes: Partial<SandboxSpec> = {}): SandboxSpec => {
    const expiresAtMs = Date.now() + 600_000;
    const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
    const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
    return { name, image: taskImage, labels, ...limits, workdir: '/workspace', mounts: [], ...changes };
  };

  it('names a Pod deleted by hand as removed', async () => {
    const sandbox = await provider.ensure(specOf('deleted'), signal);
    const running = sandbox.exec({ ...foreground, timeoutMs: 60_000, argv: ['sleep', '60'] }, signal);
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'removed' });
    await core.deleteNamespacedPod({ namespace, name: 'deleted' });
    await lost;
  });

  it('names the deadline that a Pod reached', async () => {
    const spec = specOf('late');
    const expiresAtMs = Date.now() - 894_000;
    const run = async (): Promise<unknown> => {
      // On a slow machine the Pod may reach it before it runs.
      const sandbox = await provider.ensure({ ...spec, labels: { ...spec.labels, expiresAtMs } }, signal);
      return sandbox.exec({ ...foreground, timeoutMs: 60_000, argv: ['sleep', '60'] }, signal);
    };
    await assert.rejects(run, { type: 'SandboxLost', loss: 'deadline', message: /DeadlineExceeded/ });
  });

  it("counts the eviction of a Pod that passed its own limit of disk as the agent's doing", async () => {
    const sandbox = await provider.ensure(specOf('full', { diskMb: 1 }), signal);
    const argv = sh('for n in $(seq 1200); do head -c 1000000 /dev/zero >f$n; done; sleep 100');
    const running = sandbox.exec({ ...foreground, timeoutMs: 120_000, argv }, signal);
    await assert.rejects(running, { type: 'SandboxLost', loss: 'out-of-disk', message: /Evicted/ });
  });

  it("counts the end of a Pod whose main process was killed for memory as the agent's doing", async () => {
    const spec = specOf('hungry');
    const body = describePod(spec, {
      ...defaultKubernetesSettings,
      namespace,
      programs: programsImage,
      requests: 0.01,
    });
    const [main = assert.fail()] = body.spec?.containers ?? [];
    main.command = ['sh', '-c', 'exec tail -n 1 /dev/zero'];
    await core.createNamespacedPod({ namespace, body });
    const running = provider.ensure(spec, signal).then((sandbox) => sandbox.readFile('/etc/passwd', 10_000, signal));
    await assert.rejects(running, { type: 'SandboxLost', loss: 'out-of-memory', message: /OOMKilled/ });
  });

  it('names what an account lacks, at the start and at the stage that needs it', async () => {
    assert.equal(withoutExec.description.ready, false);
    assert.match(withoutExec.description.summary, /lacks the rights create pods\/exec;/);
    const silent = withoutExec.limited.ensure(specOf('silent', { files: [noFiles] }), signal);
    await assert.rejects(silent, { type: 'SandboxUnavailable', message: /rights `get` and `create` on `pods\/exec`/ });
    assert.equal(withoutCreate.description.ready, false);
    assert.match(
      withoutCreate.description.summary,
      /lacks the rights watch pods, create pods, delete pods, get pods\/exec/,
    );
    const unmade = withoutCreate.limited.ensure(specOf('unmade'), signal);
    await assert.rejects(unmade, {
      type: 'SandboxUnavailable',
      message: /lacks a right.*cannot create resource "pods"/,
    });
    const kept = withoutCreate.limited.remove('silent');
    await assert.rejects(kept, { type: 'SandboxUnavailable', message: /lacks a right.*cannot delete resource "pods"/ });
  });

  it('says that the quota of a namespace is used up', async () => {
    const body = { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } };
    await core.createNamespacedResourceQuota({ namespace: full, body });
    await until(async () => {
      const { status } = await core.readNamespacedResourceQuota({ namespace: full, name: 'none' });
      return status?.hard?.pods === '0';
    });
    const refused = open({ namespace: full }).ensure(specOf('one-too-many'), signal);
    await assert.rejects(refused, { type: 'SandboxUnavailable', message: /quota of namespace .* is used up/ });
  });

  it('names a program whose version the image of programs lacks', async () => {
    const program = { name: 'temper-runtime', version: 'of-another-temper' };
    const mount = { source: '/nowhere', target: '/temper-runtime', readOnly: true, program } as const;
    const older = provider.ensure(specOf('older', { mounts: [mount] }), signal).then(async (sandbox) => {
      await sandbox.exec({ ...foreground, argv: ['true'] }, signal);
    });
    const message =
      /temper-programs:test lacks the program .*temper-runtime-of-another-temper.*infra\/images\/programs.ts/;
    await assert.rejects(older, { type: 'SandboxUnavailable', message });
  });

  it('names an image whose name is invalid', async () => {
    const nameless = provider.ensure(specOf('nameless', { image: 'No/Such_Name:1' }), signal);
    await assert.rejects(nameless, { type: 'MissingImage', message: /No\/Such_Name:1/ });
  });

  it('tells an image that no registry has from a registry that refuses it or does not answer', async () => {
    await using served = await startRegistry();
    const cases = [
      ['imageless', `${served.address}/absent/image:1`, 'MissingImage', /no registry has the image/],
      ['refused', `${served.address}/private/image:1`, 'MissingImage', /refused the cluster/],
      ['unanswered', 'localhost:1/no-such-image:1', 'ImageUnavailable', /could not pull the image localhost:1/],
    ] as const;
    const ofTasks = cases.map(([name, image, type, message]) => {
      const pulled = provider.ensure(specOf(name, { image }), signal);
      return assert.rejects(pulled, { type, message }, name);
    });
    // The same for the image of programs is no fault of the task.
    const ofPrograms = cases.map(([name, programs]) => {
      const without = open({ programs }).ensure(specOf(`${name}-programs`), signal);
      const message = new RegExp(`image of programs ${programs}; correct TEMPER_KUBERNETES_PROGRAMS`);
      return assert.rejects(without, { type: 'SandboxUnavailable', message }, name);
    });
    await Promise.all([...ofTasks, ...ofPrograms]);
  });

  it('names the preemption of its Pod', async () => {
    const { items } = await core.listNode();
    const memoryMb = Math.floor(Number.parseInt(items[0]?.status?.allocatable?.memory ?? '', 10) / 1024 / 2) + 1;
    const reserving = open({ requests: 1 });
    const sandbox = await reserving.ensure(specOf('preempted', { cpus: 0.1, memoryMb }), signal);
    // It keeps the Pod's last words until they are read, however busy the machine is.
    const keep = (finalizers: readonly string[]) => {
      const body = { metadata: { finalizers } };
      const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
      return core.patchNamespacedPod({ namespace, name: 'preempted', body }, merge);
    };
    await keep(['temper.test/read']);
    const running = sandbox.exec({ ...foreground, timeoutMs: 120_000, argv: ['sleep', '100'] }, signal);
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'preempted' }).finally(() => keep([]));
    const name = `urgent-${process.pid}`;
    await scheduling.createPriorityClass({ body: { metadata: { name }, value: 1000 } });
    after(() => scheduling.deletePriorityClass({ name }));
    const requests = { memory: `${memoryMb}Mi` };
    const container = { name: 'urgent', image: taskImage, command: ['sleep', '100'], resources: { requests } };
    const spec = { priorityClassName: name, terminationGracePeriodSeconds: 0, containers: [container] };
    await core.createNamespacedPod({ namespace, body: { metadata: { name }, spec } });
    await lost;
    await core.deleteNamespacedPod({ namespace, name });
  });

  it('says that no node has room', async () => {
    const waiting = open({ scheduleSec: 3, requests: 1 }).ensure(specOf('huge', { memoryMb: 1_000_000 }), signal);
    await assert.rejects(waiting, { type: 'SandboxUnavailable', message: /Insufficient memory/ });
  });

  it('names the Pod Security that forbids its Pods, and a namespace that does not exist', async () => {
    const strict = open({ namespace: restricted });
    await assert.rejects(strict.ensure(specOf('forbidden'), signal), {
      type: 'SandboxUnavailable',
      message: /Pod Security.*baseline/,
    });
    const { ready, mayComeUp, summary } = await strict.describe();
    assert.deepEqual([ready, mayComeUp], [false, undefined]);
    assert.match(summary, /Pod Security of namespace .* forbids sandboxes/);
    const nowhere = open({ namespace: 'no-such-namespace' });
    await assert.rejects(nowhere.ensure(specOf('nowhere'), signal), {
      type: 'SandboxUnavailable',
      message: /no-such-namespace.*does not exist/,
    });
    assert.partialDeepStrictEqual(await nowhere.describe(), { ready: false, mayComeUp: true });
  });

  it('names a RuntimeClass that the cluster lacks, also before the first sandbox', async () => {
    const kata = open({ runtimeClass: 'no-such-runtime' });
    const message = /no such RuntimeClass.*TEMPER_KUBERNETES_RUNTIME_CLASS/;
    await assert.rejects(kata.ensure(specOf('kata'), signal), { type: 'SandboxUnavailable', message });
    assert.match((await kata.describe()).summary, message);
    assert.equal((await provider.describe()).ready, true);
  });
});
