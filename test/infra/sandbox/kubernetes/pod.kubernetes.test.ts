import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { startApiProxy } from '../../../helpers/kubernetes/api-proxy.ts';
import { taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster } from '../../../helpers/kubernetes/namespace.ts';
import { openTestSandboxes } from '../../../helpers/kubernetes/sandboxes.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);

describe('a kubernetes sandbox, seen from the cluster', { concurrency: 4 }, async () => {
  const { namespace, settings, open, specOf } = await openTestSandboxes('pods');
  const { core, config } = openTestCluster();
  const provider = open();
  const proxy = await startApiProxy(config);
  after(() => proxy.close());
  // It opens the cluster before all tests, since this changes the environment.
  const { KUBECONFIG } = process.env;
  process.env.KUBECONFIG = proxy.kubeconfig;
  const counted = open();
  assert.equal((await counted.describe()).ready, true);
  process.env.KUBECONFIG = KUBECONFIG;
  const make = (name: string, changes?: Partial<SandboxSpec>) => provider.ensure(specOf(name, changes), limit());

  it('has no network, no account of the cluster, no capabilities and no way to gain privileges', async () => {
    const sandbox = await make('sealed');
    const api = new URL(config.getCurrentCluster()?.server ?? '');
    const connect = `import socket; socket.create_connection(("${api.hostname}", ${api.port}), 5)`;
    // A Pod that is no sandbox reaches it from the same namespace.
    const container = { name: 'open', image: taskImage, command: ['python3', '-c', connect] };
    const spec = { restartPolicy: 'OnFailure', containers: [container] };
    await core.createNamespacedPod({ namespace, body: { metadata: { name: 'open' }, spec } });
    await until(async () => (await core.readNamespacedPod({ namespace, name: 'open' })).status?.phase === 'Succeeded');
    const script = `id -u; grep -E "CapEff|CapBnd|NoNewPrivs|Seccomp:" /proc/self/status; ls /var/run/secrets; env; python3 -c '${connect}'`;
    for (const account of ['agent', 'grader'] as const) {
      const { exitCode, stdout } = await sandbox.exec({ ...foreground, account, argv: sh(script) }, limit());
      const text = String(stdout);
      assert.notEqual(exitCode, 0, 'it reached the API server');
      assert.match(text, /CapEff:\s+0+\nCapBnd:\s+0+\nNoNewPrivs:\s+1\nSeccomp:\s+2/);
      assert.doesNotMatch(text, /serviceaccount|KUBERNETES_/);
    }
    const pod = await core.readNamespacedPod({ namespace, name: 'sealed' });
    assert.ok((pod.spec?.activeDeadlineSeconds ?? 0) > 0);
    await provider.remove(sandbox.name);
  });

  it('knows the names of hosts of its task, and refuses those that a cluster does not accept', async () => {
    const hosts = [
      { name: 'Here.test', address: '127.0.0.1' },
      { name: 'away.test', address: '192.0.2.1' },
      { name: 'near.test', address: '127.0.0.1' },
    ];
    const sandbox = await make('hosts', { hosts });
    const script =
      'for name in here.test Here.test near.test away.test; do getent hosts $name; done; getent hosts no.test || echo none';
    const { stdout } = await sandbox.exec({ ...foreground, account: 'agent', argv: sh(script) }, limit());
    const addresses = String(stdout)
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/)[0]);
    assert.deepEqual(addresses, ['127.0.0.1', '127.0.0.1', '127.0.0.1', '192.0.2.1', 'none']);
    await provider.remove(sandbox.name);
    const needs = { task: 'odd', paths: [], image: taskImage, filesInImage: false };
    assert.equal(await provider.supports({ ...needs, hosts: ['Here.test'] }), undefined);
    const refusal = await provider.supports({ ...needs, hosts: ['here.test', 'my_host'] });
    assert.match(
      refusal?.message ?? '',
      /task odd names the host my_host, which a Pod cannot know: .*; rename it, or use/,
    );
  });

  for (const [whose, rights] of [
    ['without rights', {}],
    ['that is root', { root: true }],
  ] as const) {
    it(`gives an agent ${whose} directories in memory, where every account may write and run programs`, async () => {
      const name = `in-memory-${rights.root ? 'root' : 'agent'}`;
      const tmpfs = [
        { path: '/cache', sizeMb: 4 },
        { path: '/tmp', sizeMb: 256 },
      ];
      const sandbox = await make(name, { ...rights, tmpfs, sharedMemoryMb: 128 });
      const run = async (account: 'agent' | 'grader', script: string): Promise<string> => {
        const { stdout, stderr } = await sandbox.exec({ ...foreground, account, argv: sh(script) }, limit());
        return `${stdout}${stderr}`;
      };
      const found =
        'for d in /cache /tmp /dev/shm; do stat -f -c %T $d; stat -c "%a %u" $d; df -m --output=size $d | tail -n 1; done';
      const expected = ['4', '256', '128'].flatMap((size) => ['tmpfs', '1777', '0', size]);
      assert.deepEqual((await run('agent', found)).trim().split(/\s+/), expected);
      const program = 'printf "#!/bin/sh\necho runs" >/cache/$0 && chmod +x /cache/$0 && /cache/$0';
      for (const account of ['agent', 'grader'] as const) {
        assert.equal(await run(account, program.replaceAll('$0', account)), 'runs\n');
      }
      assert.match(await run('agent', 'head -c 5M /dev/zero >/cache/full'), /No space left/);
      // Twice the limit of the disk fits into memory, and takes no disk.
      await run('agent', 'for n in 1 2 3 4; do head -c 32M /dev/zero >/tmp/$n; done');
      assert.ok((await sandbox.diskUsage()).usedMb < 16);
      await provider.remove(name);
    });
  }

  it('is watched until it runs and until it is gone, and hardly read', async () => {
    const beganMs = Date.now();
    // It begins the watch.
    assert.equal(await counted.remove('never'), false);
    await counted.ensure(specOf('watched'), limit());
    assert.equal(await counted.remove('watched'), true);
    const reads = proxy.requests.filter(({ method, path }) => method === 'GET' && path.endsWith('/pods/watched'));
    // One finds the Pod to be removed, one sees that it is gone, and the others look after ten seconds without news.
    const silences = Math.floor((Date.now() - beganMs) / 10_000);
    assert.ok(reads.length >= 2 && reads.length <= 5 + silences, `${reads.length} reads, ${silences} silences`);
  });

  it('continues after its connection was cut, and fails a command that the cut interrupted', async () => {
    const cut = createKubernetesProvider(settings);
    const sandbox = await cut.ensure(specOf('cut'), limit());
    await sandbox.start(
      { key: 'job', argv: sh('until [ -e go ]; do sleep 0.1; done; exit 4'), env: {}, account: 'agent' },
      limit(),
    );
    const interrupted = sandbox.exec({ ...foreground, timeoutMs: 600_000, argv: sh('touch on; sleep 600') }, limit());
    const waiting = sandbox.wait('job', { timeoutMs: 600_000 }, limit());
    const other = createKubernetesProvider(settings);
    const watcher = await other.attach('cut');
    const isOn = sh('until [ -e on ]; do sleep 0.1; done');
    assert.equal((await watcher?.exec({ ...foreground, argv: isOn }, limit()))?.exitCode, 0);
    const failed = assert.rejects(interrupted, { type: 'SandboxUnavailable', message: /connection.*cut/ });
    await cut.close();
    await failed;
    await watcher?.exec({ ...foreground, argv: ['touch', 'go'] }, limit());
    assert.deepEqual(await waiting, { state: 'exited', exitCode: 4 });
    await other.close();
    await cut.close();
    await provider.remove('cut');
  });
});
