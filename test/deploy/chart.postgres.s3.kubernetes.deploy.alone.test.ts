import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Client } from '@temporalio/client';
import { connectClient, plainTarget } from '../../infra/temporal/connection.ts';
import type { HostRow } from '../../workers/cli/stack/hosts.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { assertNoFaultDecided, rolloutResults } from '../faults/rollout-results.ts';
import { buildTemperImage } from '../helpers/deploy/images.ts';
import { type Outside, startOutside } from '../helpers/deploy/outside.ts';
import { locateHelm } from '../helpers/deploy/tools.ts';
import { kubectl, loadImages, programsImage } from '../helpers/kubernetes/cluster.ts';
import { openTestCluster } from '../helpers/kubernetes/namespace.ts';
import { repositoryRoot } from '../helpers/sources.ts';
import { until } from '../helpers/until.ts';

const chart = join(repositoryRoot, 'infra/deploy/chart');
const image = 'temper-test:temper';
const [release, id] = ['one', randomBytes(3).toString('hex')];
const [namespace, sandboxes] = [`temper-${id}`, `temper-${id}-sandboxes`];
const pods = ['one-host-0', 'one-host-1', 'one-trainer-0'];
/** The account of temper's processes in the image. */
const account = 10_001;
const limitMs = 600_000;

describe('the Helm chart, installed on a cluster', () => {
  let directory = '';
  let outside: Outside | undefined;
  let helm: (...words: readonly string[]) => Promise<string>;
  const inNamespace = (...words: readonly string[]) => kubectl('--namespace', namespace, ...words);
  const temper = (...words: readonly string[]) => inNamespace('exec', 'deploy/one-control', '--', 'temper', ...words);
  const hostRows = async (): Promise<readonly HostRow[]> => JSON.parse(await temper('host', 'list', '--json'));
  const status = async (run: string): Promise<RunStatus> => JSON.parse(await temper('show', run, '--json'));

  before(async () => {
    const program = await locateHelm({ env: process.env, progress: (line) => console.error(line) });
    await buildTemperImage(image);
    await loadImages(image);
    directory = await mkdtemp(join(tmpdir(), 'temper-chart-'));
    await chmod(directory, 0o755);
    const { server = '' } = openTestCluster().config.getCurrentCluster() ?? {};
    const api = new URL(server);
    outside = await startOutside(api.hostname);
    await prepare(outside);
    await writeFile(join(directory, 'values.json'), JSON.stringify(valuesFor(outside, api.host)));
    helm = async (...words) => {
      const own = ['--namespace', namespace, '--wait', '--timeout', '5m'];
      const [command = '', ...rest] = words;
      const { stdout } = await promisify(execFile)(program, [command, ...own, ...rest], { maxBuffer: 2 ** 26 });
      return stdout;
    };
    await helm('install', release, chart, '--values', join(directory, 'values.json'));
  });
  after(async () => {
    await kubectl('delete', 'namespace', namespace, sandboxes, '--ignore-not-found', '--wait=false');
    const volumes = ['checkpoints', 'journals', ...pods].map((name) => `${namespace}-${name}`);
    await kubectl('delete', 'persistentvolumes', ...volumes, '--ignore-not-found', '--wait=false');
    await outside?.[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });

  it('has two hosts that offer Pods as sandboxes', async () => {
    // One whose machine stands still is silent for a while.
    const rows = await until(async () => {
      const all = await hostRows();
      return all.every(({ state }) => state === 'working') && all;
    });
    assert.deepEqual(
      rows.map(({ name, sandboxes: kinds }) => [name, kinds]),
      [
        ['one-host-0', ['kubernetes']],
        ['one-host-1', ['kubernetes']],
      ],
    );
  });

  it('refuses a release without a secret, a key of one or a claim, or with the namespace of another, before it changes anything', async () => {
    for (const [value, message] of [
      ['store.secret=none', /store\.secret: namespace temper-\w+ has no secret none; create it before/],
      ['stackKey.key=other', /stackKey\.secret: the secret temper-stack-key .* lacks the key other/],
      ['hosts.journalsClaim=none', /hosts\.journalsClaim: namespace temper-\w+ has no claim none/],
      [
        'volumes[0].name=checkpoints,volumes[0].persistentVolumeClaim.claimName=none',
        /volumes: namespace temper-\w+ has no claim none/,
      ],
      ['sandboxes.namespace=default', /sandboxes\.namespace: the namespace default exists, and this release did not/],
    ] as const) {
      await assert.rejects(helm('upgrade', release, chart, '--reuse-values', '--set', value), message);
    }
  });

  it('loses no agent of a training run when a host is deleted, an upgrade fails and is rolled back, and one succeeds', {
    timeout: limitMs,
  }, async () => {
    const { checkpoints, signalPolicy } = outside ?? assert.fail();
    // An upgrade takes longer than the agents of these tasks have.
    await writeFile(join(checkpoints, 'run.json'), JSON.stringify({ settings: { agentTimeoutSec: 1800 } }));
    const shape = ['--tasks', 'generated:train/3', '--steps', '2', '--groups', '2', '--rollouts', '3'];
    await temper('train', '--id', 'demo', '--input', '/checkpoints/run.json', ...shape, '--detach');
    await withClient(async (client) => {
      await until(async () => (await status('demo')).rolloutsStarted > 0, limitMs);
      // Agents wait for the policy, so that they are at work when their host goes.
      signalPolicy('SIGSTOP');
      await until(() => isAtWork(client, 'one-host-0'), limitMs);
      await until(() => isAtWork(client, 'one-host-1'), limitMs);
      await inNamespace('delete', 'pod', 'one-host-0', '--wait=false');
      const upgrade = ['upgrade', release, chart, '--reuse-values', '--set'];
      await assert.rejects(helm(...upgrade, 'image.tag=wrong', '--timeout', '20s'), /context deadline exceeded/);
      await helm('rollback', release);
      await helm(...upgrade, 'podAnnotations.upgraded=yes');
      signalPolicy('SIGCONT');
      await until(async () => (await status('demo')).phase === 'done', limitMs);
      const results = await rolloutResults(client);
      assert.deepEqual([results.length, (await status('demo')).policyVersion], [12, 2]);
      assertNoFaultDecided(results);
      assert.ok(results.every(({ epochs }) => epochs === 1));
    });
    await until(async () => (await kubectl('--namespace', sandboxes, 'get', 'pods', '--output=name')) === '');
  });

  it('has a host that stays adopt the Pods of one that goes, by the journals on their claim', {
    timeout: limitMs,
  }, async () => {
    const { signalPolicy } = outside ?? assert.fail();
    await withClient(async (client) => {
      const shape = ['--tasks', 'generated:train/3', '--steps', '2', '--groups', '2', '--rollouts', '3'];
      await temper('train', '--id', 'adopted', ...shape, '--detach');
      await until(async () => (await status('adopted')).rolloutsStarted > 0, limitMs);
      signalPolicy('SIGSTOP');
      await until(() => isAtWork(client, 'one-host-1'), limitMs);
      await inNamespace('scale', 'statefulset/one-host', '--replicas=1');
      await inNamespace('wait', '--for=delete', 'pod/one-host-1', '--timeout=5m');
      await temper('host', 'forget', 'one-host-1', '--yes', '--force');
      signalPolicy('SIGCONT');
      await until(async () => (await status('adopted')).phase === 'done', limitMs);
      const adopted = (await rolloutResults(client)).filter(({ adoptions = 0 }) => adoptions > 0);
      assert.ok(adopted.length > 0, 'expected a rollout whose Pod was adopted');
      for (const { outcome, epochs } of adopted) assert.deepEqual([outcome, epochs], ['scored', 1]);
    });
    await until(async () => (await kubectl('--namespace', sandboxes, 'get', 'pods', '--output=name')) === '', limitMs);
  });

  it('leaves the volumes alone behind, whose claims and directories are deleted by hand', async () => {
    await helm('uninstall', release);
    const selector = ['--selector', `app.kubernetes.io/instance=${release}`];
    const ofVolumes = ['--selector', `app.kubernetes.io/instance=${release},temper.namespace=${namespace}`];
    const kinds = 'all,persistentvolumeclaims,serviceaccounts,networkpolicies,poddisruptionbudgets';
    const left = async () => {
      const namespaced = await inNamespace('get', kinds, ...selector, '--output=name');
      const volumes = await kubectl('get', 'persistentvolumes', ...ofVolumes, '--output=name');
      return `${volumes}${namespaced}`.split('\n').filter(Boolean);
    };
    const volumes = pods.map((pod) => `persistentvolume/${namespace}-${pod}`);
    // Helm waits for its own objects, and not for their Pods.
    await until(async () => !(await left()).some((name) => name.startsWith('pod/')), 300_000);
    assert.deepEqual(await left(), [...volumes, ...pods.map((pod) => `persistentvolumeclaim/home-${pod}`)]);
    assert.equal(await kubectl('get', 'namespace', sandboxes, '--ignore-not-found'), '');
    await inNamespace('delete', 'persistentvolumeclaims', ...selector);
    await kubectl('delete', 'persistentvolumes', ...ofVolumes);
    assert.deepEqual(await left(), []);
  });

  /** Does something with a client of the stack's Temporal server, and lets the policy continue if it was stopped. */
  async function withClient(use: (client: Client) => Promise<void>): Promise<void> {
    const { temporal, namespace: ofTemporal, signalPolicy } = outside ?? assert.fail();
    const { client, close } = await connectClient(plainTarget(temporal, ofTemporal));
    try {
      await use(client);
    } finally {
      signalPolicy('SIGCONT');
      await close();
    }
  }

  /** Whether an agent of a host waits for the policy. */
  async function isAtWork(client: Client, host: string): Promise<boolean> {
    const query = `ExecutionStatus="Running" AND WorkflowType="rollout" AND ${searchAttributes.host.name}="${host}"`;
    for await (const { workflowId } of client.workflow.list({ query })) {
      const { raw } = await client.workflow.getHandle(workflowId).describe();
      if (raw.pendingActivities?.some(({ activityType }) => activityType?.name === 'awaitAgent')) return true;
    }
    return false;
  }

  /** Makes what is there before the chart: the namespace, its secrets, and a directory for each volume. */
  async function prepare({ storeKeys, policyKeys, policyCertificate, checkpoints }: Outside): Promise<void> {
    const { core } = openTestCluster();
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await core.createNamespace({ body: { metadata: { name: namespace, labels } } });
    const secrets = {
      'temper-stack-key': { key: randomBytes(32).toString('hex') },
      store: storeKeys,
      engines: policyKeys,
      authority: { 'ca.crt': policyCertificate },
    };
    for (const [name, stringData] of Object.entries(secrets)) {
      await core.createNamespacedSecret({ namespace, body: { metadata: { name }, stringData } });
    }
    for (const name of [...pods, 'journals']) {
      await mkdir(join(directory, name));
      await chown(join(directory, name), account, account);
    }
    await claim('checkpoints', checkpoints);
    await claim('journals', join(directory, 'journals'));
  }

  /** Makes a claim that all Pods may mount, on a directory of the node. */
  async function claim(name: string, path: string): Promise<void> {
    const { core } = openTestCluster();
    const access = { accessModes: ['ReadWriteMany'], storageClassName: '' };
    const volumeName = `${namespace}-${name}`;
    await core.createPersistentVolume({
      body: {
        metadata: { name: volumeName },
        spec: {
          ...access,
          capacity: { storage: '1Gi' },
          persistentVolumeReclaimPolicy: 'Retain',
          hostPath: { path, type: 'Directory' },
          claimRef: { namespace, name },
        },
      },
    });
    const resources = { requests: { storage: '1Gi' } };
    const body = { metadata: { name }, spec: { ...access, resources, volumeName } };
    await core.createNamespacedPersistentVolumeClaim({ namespace, body });
  }

  function valuesFor(services: Outside, apiServer: string): object {
    const { temporal, namespace: ofTemporal, store, policy, checkpoints } = services;
    const [repository, tag] = image.split(':');
    const storage = { size: '1Gi', hostPath: directory };
    // The node has two cores, on which sandboxes and the old and new control worker lie at once.
    const resources = { requests: { cpu: '50m', memory: '256Mi' } };
    return {
      image: { repository, tag },
      temporal: { address: temporal, namespace: ofTemporal },
      store: { ...store, secret: 'store' },
      engine: { urls: [policy], trainerUrl: policy, secret: 'engines' },
      settings: {
        TEMPER_CHECKPOINTS: '/checkpoints',
        TEMPER_ENGINE_CHECKPOINTS: checkpoints,
        NODE_EXTRA_CA_CERTS: '/authority/ca.crt',
      },
      volumes: [
        { name: 'checkpoints', persistentVolumeClaim: { claimName: 'checkpoints' } },
        { name: 'authority', secret: { secretName: 'authority' } },
      ],
      volumeMounts: [
        { name: 'checkpoints', mountPath: '/checkpoints' },
        { name: 'authority', mountPath: '/authority' },
      ],
      sandboxes: { namespace: sandboxes, programs: programsImage, apiServer },
      control: { replicas: 1, resources },
      hosts: {
        replicas: 2,
        capacity: 3,
        journalsClaim: 'journals',
        storage,
        settings: { TEMPER_KUBERNETES_REQUESTS: '0.1' },
        resources,
      },
      trainer: { storage, resources },
    };
  }
});
