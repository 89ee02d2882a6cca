import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { PatchStrategy, SchedulingV1Api, setHeaderOptions } from '@kubernetes/client-node';
import { SandboxFailure } from '../../../../infra/sandbox/failure.ts';
import type { ImageProgress } from '../../../../infra/sandbox/image.ts';
import { describePod } from '../../../../infra/sandbox/kubernetes/pod.ts';
import { defaultKubernetesSettings } from '../../../../infra/sandbox/kubernetes/settings.ts';
import { startRegistry, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster } from '../../../helpers/kubernetes/namespace.ts';
import { openTestSandboxes } from '../../../helpers/kubernetes/sandboxes.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const asFailure = (error: SandboxFailure): SandboxFailure => error;
/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
/** A command that lasts until its Pod ends. */
const long = { timeoutMs: 600_000, argv: ['sleep', '600'] } as const;

describe('a failure of a kubernetes sandbox', { concurrency: 8 }, async () => {
  const { core, config } = openTestCluster();
  const scheduling = config.makeApiClient(SchedulingV1Api);
  const { namespace, settings, open, specOf } = await openTestSandboxes('failures');
  const provider = open();

  /** Keeps a Pod's last words until they are read, however busy the machine is. */
  const keep = (name: string, finalizers: readonly string[]) => {
    const body = { metadata: { finalizers } };
    const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
    return core.patchNamespacedPod({ namespace, name, body }, merge);
  };

  it('names a Pod deleted by hand as removed', async () => {
    const sandbox = await provider.ensure(specOf('deleted'), limit());
    const running = sandbox.exec({ ...foreground, ...long }, limit());
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'removed' });
    await core.deleteNamespacedPod({ namespace, name: 'deleted' });
    await lost;
  });

  it('names the deadline that a Pod reached', async () => {
    const spec = specOf('late');
    const expiresAtMs = Date.now() - 894_000;
    const run = async (): Promise<unknown> => {
      // On a slow machine the Pod may reach it before it runs.
      const sandbox = await provider.ensure({ ...spec, labels: { ...spec.labels, expiresAtMs } }, limit());
      return sandbox.exec({ ...foreground, ...long }, limit());
    };
    await assert.rejects(run, { type: 'SandboxLost', loss: 'deadline', message: /DeadlineExceeded/ });
  });

  it('names the eviction of its Pod, as when its node is drained', async () => {
    const sandbox = await provider.ensure(specOf('evicted'), limit());
    const running = sandbox.exec({ ...foreground, ...long }, limit());
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'evicted', message: /its Pod was evicted/ });
    await keep('evicted', ['temper.test/read']);
    const eviction = { metadata: { name: 'evicted', namespace } };
    await core.createNamespacedPodEviction({ namespace, name: 'evicted', body: eviction });
    await lost.finally(() => keep('evicted', []));
  });

  it("counts the eviction of a Pod that passed its own limit of disk as the agent's doing", async () => {
    const sandbox = await provider.ensure(specOf('full', { diskMb: 1 }), limit());
    const argv = sh('for n in $(seq 1200); do head -c 1000000 /dev/zero >f$n; done; sleep 600');
    const running = sandbox.exec({ ...foreground, ...long, argv }, limit());
    await assert.rejects(running, { type: 'SandboxLost', loss: 'out-of-disk', message: /Evicted/ });
  });

  it("counts the end of a Pod whose main process was killed for memory as the agent's doing", async () => {
    const spec = specOf('hungry');
    const body = describePod(spec, { ...defaultKubernetesSettings, ...settings });
    const [main = assert.fail()] = body.spec?.containers ?? [];
    main.command = ['sh', '-c', 'exec tail -n 1 /dev/zero'];
    await core.createNamespacedPod({ namespace, body });
    const use = async (): Promise<void> => {
      const sandbox = await provider.ensure(spec, limit());
      // The cluster may be late to say what ended its container. Until then a command fails as one that was cut.
      for (;;) {
        await sandbox.readFile('/etc/passwd', 10_000, limit()).catch((error: unknown) => {
          if (!(error instanceof SandboxFailure) || error.type !== 'SandboxUnavailable') throw error;
        });
      }
    };
    const message = /OOMKilled|memory is full/;
    await assert.rejects(use, { type: 'SandboxLost', loss: 'out-of-memory', message });
  });

  it('names a program whose version the image of programs lacks', async () => {
    const program = { name: 'temper-runtime', version: 'of-another-temper' };
    const mount = { source: '/nowhere', target: '/temper-runtime', readOnly: true, program } as const;
    const older = provider.ensure(specOf('older', { mounts: [mount] }), limit()).then(async (sandbox) => {
      await sandbox.exec({ ...foreground, argv: ['true'] }, limit());
    });
    const message =
      /temper-programs:test lacks the program .*temper-runtime-of-another-temper.*infra\/images\/programs.ts/;
    await assert.rejects(older, { type: 'SandboxUnavailable', message });
  });

  it('names an image whose name is invalid', async () => {
    const nameless = provider.ensure(specOf('nameless', { image: 'No/Such_Name:1' }), limit());
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
      const pulled = provider.ensure(specOf(name, { image }), limit());
      return assert.rejects(pulled, { type, message }, name);
    });
    // The same for the image of programs is no fault of the task.
    const ofPrograms = cases.map(([name, programs]) => {
      const without = open({ programs }).ensure(specOf(`${name}-programs`), limit());
      const message = new RegExp(`image of programs ${programs}; correct TEMPER_KUBERNETES_PROGRAMS`);
      return assert.rejects(without, { type: 'SandboxUnavailable', message }, name);
    });
    // The Pod has a node, so that more nodes would not help.
    const image = `${served.address}/silent/image:1`;
    const beganMs = Date.now();
    const reports: ImageProgress[] = [];
    const report = (progress: ImageProgress) => void reports.push(progress);
    const order = { ...specOf('slow', { image }), report };
    const message = /^node .* did not start the Pod of sandbox slow within 15 s, and still pulls .*silent\/image:1/;
    const hurried = open({ scheduleSec: 15 });
    // A busy node may begin the pull only after that, and ends one that brings nothing for half a minute.
    const slow = until(async () => {
      const failure = await hurried.ensure(order, limit()).then(() => assert.fail('it runs'), asFailure);
      assert.match(failure.type, /^(Image|Sandbox)Unavailable$/, failure.message);
      return failure.type === 'ImageUnavailable' && message.test(failure.message);
    }, 240_000);
    await Promise.all([...ofTasks, ...ofPrograms, slow]);
    const pull = reports.findLast(({ doing }) => doing === 'pulling');
    assert.equal(pull?.image, image, JSON.stringify(reports));
    const sinceMs = Date.parse(pull.since ?? '');
    assert.ok(sinceMs > beganMs - 60_000 && sinceMs < Date.now() + 60_000, JSON.stringify(reports));
  });

  it('names the preemption of its Pod', async () => {
    const { items } = await core.listNode();
    const memoryMb = Math.floor(Number.parseInt(items[0]?.status?.allocatable?.memory ?? '', 10) / 1024 / 2) + 1;
    const reserving = open({ requests: 1 });
    const sandbox = await reserving.ensure(specOf('preempted', { cpus: 0.1, memoryMb }), limit());
    await keep('preempted', ['temper.test/read']);
    const running = sandbox.exec({ ...foreground, ...long }, limit());
    const lost = assert
      .rejects(running, { type: 'SandboxLost', loss: 'preempted' })
      .finally(() => keep('preempted', []));
    const name = `urgent-${process.pid}`;
    await scheduling.createPriorityClass({ body: { metadata: { name }, value: 1000 } });
    after(() => scheduling.deletePriorityClass({ name }));
    const requests = { memory: `${memoryMb}Mi` };
    const container = { name: 'urgent', image: taskImage, command: ['sleep', '100'], resources: { requests } };
    const spec = { priorityClassName: name, terminationGracePeriodSeconds: 0, containers: [container] };
    // The API server learns of a new class after a moment.
    await until(() =>
      core.createNamespacedPod({ namespace, body: { metadata: { name }, spec } }).then(
        () => true,
        (error: unknown) => {
          if (/no PriorityClass/.test(String(error))) return false;
          throw error;
        },
      ),
    );
    await lost;
    await core.deleteNamespacedPod({ namespace, name });
  });

  it('says that no node has room', async () => {
    const reports: ImageProgress[] = [];
    const order = { ...specOf('huge', { memoryMb: 1_000_000 }), report: (one: ImageProgress) => reports.push(one) };
    const waiting = open({ scheduleSec: 3, requests: 1 });
    // The scheduler of a busy cluster may say why only after the wait.
    await until(async () => {
      const failure = await waiting.ensure(order, limit()).then(() => assert.fail('it runs'), asFailure);
      assert.equal(failure.type, 'SandboxUnavailable');
      return /Insufficient memory/.test(failure.message);
    });
    const report = reports.find(({ says = '' }) => /Insufficient memory/.test(says));
    assert.partialDeepStrictEqual(report, { image: taskImage, doing: 'waiting for a node' });
  });
});
