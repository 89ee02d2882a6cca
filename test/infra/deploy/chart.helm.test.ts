import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../../infra/settings/config.ts';
import { locateHelm } from '../../helpers/deploy/tools.ts';
import { repositoryRoot } from '../../helpers/sources.ts';

const run = promisify(execFile);
const chart = join(repositoryRoot, 'infra/deploy/chart');

type Values = Readonly<Record<string, unknown>>;

/** The least that the chart asks for. */
const values = {
  temporal: { address: 'temporal.example:7233' },
  store: { address: 's3://bucket/stack' },
  sandboxes: { programs: 'registry.example/programs:1' },
  engine: { urls: ['http://engine.example:8000'], trainerUrl: 'http://trainer.example:9000' },
};

/** All that is optional. */
const everything = {
  ...values,
  image: { tag: '1', pullSecrets: [{ name: 'registry' }] },
  temporal: { ...values.temporal, secret: 'cloud', tlsSecret: 'certificates', serverName: 'temporal' },
  store: { ...values.store, endpoint: 'http://store.example:7070', region: 'here', secret: 'store' },
  engine: { embedded: true, secret: 'engines' },
  settings: { TEMPER_HOST_LOST_AFTER: '60', TEMPER_TRAINER_REQUEST_TOKENS: '9', HF_ENDPOINT: 'https://hub.example' },
  hosts: {
    settings: { TEMPER_GATEWAYS: '2', E2B_API_KEY_FILE: '/etc/e2b/key' },
    secret: 'providers',
    journalsClaim: 'journals',
    storage: { size: '1Gi', hostPath: '/srv/temper' },
  },
  sandboxes: { ...values.sandboxes, apiServer: '10.0.0.1:6443', quota: { pods: '40' } },
  trainer: { storage: { size: '1Gi', className: 'fast' } },
  networkPolicy: { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
  metrics: { port: 9100, secret: 'prometheus', from: [{ podSelector: {} }] },
  tlsSecret: 'certificate',
  podAnnotations: { by: 'test' },
  volumes: [{ name: 'checkpoints', persistentVolumeClaim: { claimName: 'checkpoints' } }],
  volumeMounts: [{ name: 'checkpoints', mountPath: '/checkpoints' }],
  hostAliases: [{ ip: '10.0.0.2', hostnames: ['temporal.example'] }],
};

/** Values that are refused, and what the refusal says. */
const refused: readonly (readonly [string, Values, RegExp])[] = [
  ['a value that it does not know', { hosts: { replica: 3 } }, /at '\/hosts'.*'replica' not allowed/],
  ['no address of Temporal', { temporal: { address: '' } }, /temporal\.address: expected host:port/],
  ['an address without a port', { temporal: { address: 'temporal.example' } }, /at '\/temporal\/address'/],
  ['no store', { store: { address: '' } }, /store\.address: expected s3:\/\/bucket\/prefix/],
  ['a store that is no bucket', { store: { address: '/srv/store' } }, /at '\/store\/address'/],
  ['no image of programs', { sandboxes: { programs: '' } }, /sandboxes\.programs: expected the image/],
  ['no engine', { engine: {} }, /engine: expected urls and trainerUrl, or embedded: true/],
  ['the embedded engine without keys', { engine: { embedded: true } }, /engine\.secret: expected a secret/],
  [
    'the embedded engine without a certificate',
    { engine: { embedded: true, secret: 'engines' } },
    /tlsSecret: expected a secret with tls\.crt, tls\.key and ca\.crt/,
  ],
  ['metrics without a certificate', { metrics: { port: 9100, secret: 'prometheus' } }, /tlsSecret: expected a secret/],
  ['metrics without a token', { metrics: { port: 9100 }, tlsSecret: 'tls' }, /metrics\.secret: expected a secret/],
  ['a secret among the settings', { settings: { TEMPER_STACK_KEY: 'abc' } }, /settings: TEMPER_STACK_KEY is a secret/],
  [
    'a secret of the hosts',
    { hosts: { settings: { E2B_API_KEY: 'abc' } } },
    /hosts\.settings: E2B_API_KEY is a secret.*`metrics\.secret` or `hosts\.secret` names/,
  ],
  ['a token of the hub', { settings: { HF_TOKEN: 'abc' } }, /settings: HF_TOKEN is a secret/],
  [
    'a directory that the image sets',
    { settings: { XDG_CACHE_HOME: '/tmp' } },
    /settings: the chart sets XDG_CACHE_HOME from the image; leave it out here/,
  ],
  ['a name that is no setting', { settings: { PATH: '/bin' } }, /at '\/settings'.*'PATH' not allowed/],
  ['a setting that is no text', { settings: { TEMPER_RETRIES: 3 } }, /at '\/settings\/TEMPER_RETRIES'.*want string/],
  ['a claim that is no name', { hosts: { journalsClaim: 'A B' } }, /at '\/hosts\/journalsClaim'/],
  [
    'a setting that another value gives',
    { settings: { TEMPER_STORE: 's3://bucket/other' } },
    /settings: the chart sets TEMPER_STORE from store\.address; leave it out here/,
  ],
  [
    'a setting of the hosts that another value gives',
    { hosts: { settings: { TEMPER_CAPACITY: '3' } } },
    /hosts\.settings: the chart sets TEMPER_CAPACITY from hosts\.capacity/,
  ],
  [
    'sandboxes in the namespace of the release, whose processes would then connect to nothing',
    { sandboxes: { ...values.sandboxes, namespace: 'default' } },
    /sandboxes\.namespace: expected another namespace than default/,
  ],
  ['a repository with a tag', { image: { repository: 'registry.example/temper:1' } }, /at '\/image\/repository'/],
  ['a tag that is a number', { image: { tag: 1.5 } }, /at '\/image\/tag': got number, want string/],
  ['a pull secret without a name', { image: { pullSecrets: ['registry'] } }, /at '\/image\/pullSecrets\/0'/],
  ['a volume without a name', { volumes: [{ emptyDir: {} }] }, /at '\/volumes\/0': missing property 'name'/],
  ['a relative place of a volume', { volumeMounts: [{ name: 'a', mountPath: 'a' }] }, /\/volumeMounts\/0\/mountPath'/],
  ['an annotation that is no text', { podAnnotations: { on: true } }, /at '\/podAnnotations\/on': got boolean/],
  ['no host', { hosts: { replicas: 0 } }, /at '\/hosts\/replicas'/],
  [
    'a relative directory of the node',
    { trainer: { storage: { hostPath: 'data' } } },
    /at '\/trainer\/storage\/hostPath'/,
  ],
];

interface Workload {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly [Container]; readonly volumes: readonly Volume[] };
    };
  };
}

interface Volume {
  readonly name: string;
  readonly secret?: { readonly items?: readonly object[] };
}

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}

const workloadsIn = (text: string): readonly Workload[] =>
  parseAllDocuments(text)
    .map((document) => document.toJSON())
    .filter((object) => ['Deployment', 'StatefulSet'].includes(object.kind));

describe('the Helm chart', () => {
  let directory = '';
  let helm = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-chart-'));
    helm = await locateHelm({ env: process.env, progress: (line) => console.error(line) });
  });
  after(() => rm(directory, { recursive: true, force: true }));

  for (const [title, chosen] of [
    ['the least', values],
    ['all', everything],
  ] as const) {
    it(`passes a strict lint and gives its processes settings that they accept, with ${title} that one can choose`, async () => {
      const file = await writeValues(chosen);
      await run(helm, ['lint', '--strict', chart, '--values', file]);
      const { stdout } = await run(helm, ['template', 'one', chart, '--namespace', 'temper', '--values', file]);
      const workloads = workloadsIn(stdout);
      assert.deepEqual(workloads.map(({ metadata }) => metadata.name).sort(), [
        'one-control',
        'one-host',
        'one-trainer',
      ]);
      for (const { spec } of workloads) {
        const variables = spec.template.spec.containers[0].env.map(({ name, value = 'one-host-0' }) => [name, value]);
        assert.equal(new Set(variables.map(([name]) => name)).size, variables.length, 'expected each variable once');
        const { TEMPER_STACK_KEY_FILE: _file, ...known } = Object.fromEntries(variables);
        assert.equal(readConfig({ ...known, TEMPER_STACK_KEY: 'a'.repeat(64) }).store.kind, 's3');
      }
    });
  }

  for (const [title, change, message] of refused) {
    it(`refuses ${title}`, async () => {
      const file = await writeValues({ ...values, ...change });
      await assert.rejects(run(helm, ['template', 'one', chart, '--values', file]), message);
    });
  }

  it('prefers the settings of the hosts to those of all processes, and accepts an image by its port and digest', async () => {
    const image = { repository: 'localhost:5000/temper@sha256', tag: 'a'.repeat(64) };
    const settings = { TEMPER_GATEWAYS: '2', TEMPER_SANDBOX: 'e2b' };
    const file = await writeValues({ ...values, image, settings, hosts: { settings: { TEMPER_GATEWAYS: '3' } } });
    const { stdout } = await run(helm, ['template', 'one', chart, '--values', file]);
    const found = workloadsIn(stdout).map(({ metadata, spec }) => {
      const { env } = spec.template.spec.containers[0];
      return [metadata.name, ...env.flatMap(({ name, value = '' }) => (name in settings ? `${name}=${value}` : []))];
    });
    assert.deepEqual(found.sort(), [
      ['one-control', 'TEMPER_GATEWAYS=2', 'TEMPER_SANDBOX=e2b'],
      ['one-host', 'TEMPER_GATEWAYS=3', 'TEMPER_SANDBOX=kubernetes'],
      ['one-trainer', 'TEMPER_GATEWAYS=2', 'TEMPER_SANDBOX=e2b'],
    ]);
    assert.match(stdout, new RegExp(`image: "localhost:5000/temper@sha256:${image.tag}"`));
  });

  it('gives the key of the certificate to the Pods that listen alone', async () => {
    for (const [metrics, listening] of [
      [{}, ['one-trainer']],
      [everything.metrics, ['one-control', 'one-host', 'one-trainer']],
    ] as const) {
      const file = await writeValues({ ...everything, metrics });
      const { stdout } = await run(helm, ['template', 'one', chart, '--values', file]);
      const workloads = workloadsIn(stdout);
      const withKey = workloads.filter(({ spec }) =>
        spec.template.spec.volumes.some(({ name, secret }) => name === 'tls' && secret?.items === undefined),
      );
      assert.deepEqual(withKey.map(({ metadata }) => metadata.name).sort(), listening);
      for (const { metadata, spec } of workloads) {
        const names = spec.template.spec.containers[0].env.map(({ name }) => name);
        assert.equal(names.includes('TEMPER_LISTEN'), metadata.name === 'one-trainer');
        assert.equal(
          names.includes('TEMPER_LISTEN_KEY'),
          listening.some((one) => one === metadata.name),
        );
      }
    }
  });

  async function writeValues(chosen: Values): Promise<string> {
    const file = join(directory, 'values.json');
    await writeFile(file, JSON.stringify(chosen));
    return file;
  }
});
