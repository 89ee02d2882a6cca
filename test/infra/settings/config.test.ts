import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultCapacity } from '../../../infra/machine/rollouts-that-fit.ts';
import { readConfig } from '../../../infra/settings/config.ts';
import { settings } from '../../../infra/settings/environment.ts';

const environment = {
  TEMPER_HOME: '/tmp/some-home',
  TEMPER_POLICY_PORT: '8700',
  TEMPER_METRICS_PORT: '9464',
  TEMPER_TASK_ROOTS: '/a,/b',
  TEMPER_ENGINE_SEEDS: 'off',
  TEMPER_ENGINE_API_KEY: 'secret',
  XDG_CACHE_HOME: '/tmp/some-cache',
};

const neverEmpty = [
  'TEMPER_JOURNALS',
  'TEMPER_STORE_REGION',
  'TEMPER_STACK_KEY',
  'TEMPER_PRICES',
  'E2B_API_KEY',
  'TEMPER_HOME',
  'TEMPER_MODEL_DIR',
  'TEMPER_ENGINES',
  'TEMPER_UPSTREAMS',
  'TEMPER_ENVIRONMENTS',
  'TEMPER_CHECKPOINTS',
  'TEMPER_ENGINE_CHECKPOINTS',
  'TEMPER_ENGINE_MODEL',
  'TEMPER_TRAINER_MODEL',
  'TEMPER_PULLS',
  'TEMPER_BUILDS',
  'TEMPER_IMAGE_DISK_GB',
  'TEMPER_SWEEP_SHARE',
];

describe('readConfig', () => {
  it('parses the settings of the environment', () => {
    const config = readConfig(environment);
    assert.equal(config.home, '/tmp/some-home');
    assert.deepEqual(config.store, { kind: 'directory', root: '/tmp/some-home' });
    assert.deepEqual(config.metricsPorts, { control: 9464, host: 9465, trainer: 9466 });
    assert.deepEqual(config.taskRoots, ['/a', '/b']);
    assert.equal(config.engine.seeds, false);
    assert.equal(config.cacheDir, '/tmp/some-cache/temper');
  });

  it('keeps the journals of this host in the home, or below the directory that all hosts share', () => {
    const { sharedJournals, paths } = readConfig(environment);
    assert.deepEqual([sharedJournals, paths.journals], [null, '/tmp/some-home/gateway/journals']);
    const shared = readConfig({ ...environment, TEMPER_HOST: 'box-1', TEMPER_JOURNALS: '/mnt/journals' });
    assert.deepEqual([shared.sharedJournals, shared.paths.journals], ['/mnt/journals', '/mnt/journals/box-1']);
  });

  it('reads the bucket that the processes of the stack share, which is in the path of another server than AWS', () => {
    const bucket = { ...environment, TEMPER_STORE: 's3://some-bucket/one/two/' };
    const aws = {
      kind: 's3',
      bucket: 'some-bucket',
      prefix: 'one/two',
      endpoint: null,
      region: null,
      pathStyle: false,
    };
    assert.deepEqual(readConfig(bucket).store, aws);
    const endpoint = 'https://s3.example';
    const other = { ...aws, endpoint, region: 'us-east-1', pathStyle: true };
    assert.deepEqual(readConfig({ ...bucket, TEMPER_STORE_ENDPOINT: endpoint }).store, other);
    const own = { TEMPER_STORE_ENDPOINT: endpoint, TEMPER_STORE_REGION: 'r', TEMPER_STORE_PATH_STYLE: 'off' };
    assert.deepEqual(readConfig({ ...bucket, ...own }).store, { ...aws, endpoint, region: 'r' });
    for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION']) {
      const { store } = readConfig({ ...bucket, TEMPER_STORE_ENDPOINT: endpoint, [name]: 'eu-1' });
      assert.deepEqual(store, { ...other, region: 'eu-1' });
    }
    for (const TEMPER_STORE of ['/directory', 's3://', 's3://a/../b', 'http://bucket']) {
      assert.throws(
        () => readConfig({ ...environment, TEMPER_STORE }),
        /expected s3:\/\/bucket or s3:\/\/bucket\/prefix/,
      );
    }
    const secret = { ...bucket, TEMPER_STORE_ENDPOINT: 'https://me:pass@s3.example' };
    assert.throws(() => readConfig(secret), /expected an address without credentials/);
  });

  it('holds the calls of an agent for as long as another host may need to adopt it, unless a time is given', () => {
    assert.equal(readConfig(environment).hostHoldMs, 600_000);
    assert.equal(readConfig({ ...environment, TEMPER_HOST_LOST_AFTER: '30' }).hostHoldMs, 450_000);
    assert.equal(readConfig({ ...environment, TEMPER_HOST_HOLD: '7' }).hostHoldMs, 7_000);
  });

  it('makes the control worker a version only if both the deployment and the build are named', () => {
    const version = { TEMPER_DEPLOYMENT: 'temper', TEMPER_BUILD_ID: '0.5.0-abc' };
    assert.deepEqual(readConfig({ ...environment, ...version }).deployment, { name: 'temper', buildId: '0.5.0-abc' });
    assert.equal(readConfig(environment).deployment, null);
    for (const [name, value] of Object.entries(version)) {
      assert.throws(() => readConfig({ ...environment, [name]: value }), new RegExp(`got only ${name}; set TEMPER_`));
    }
    assert.throws(() => readConfig({ TEMPER_DEPLOYMENT: 'a b' }), /TEMPER_DEPLOYMENT: expected 1 to 60 letters/);
  });

  it('uses the embedded policy server as engine and trainer unless others are named', () => {
    const { pool } = readConfig(environment);
    assert.deepEqual([...pool.urls, pool.trainer.url], ['http://127.0.0.1:8700', 'http://127.0.0.1:8700']);
  });

  it('reaches the embedded policy server at the address on which it listens, by TLS if that is on a network', () => {
    const listening = (address: string) => readConfig({ ...environment, TEMPER_LISTEN: address });
    const { pool, policyUrl } = listening('10.1.2.3');
    assert.deepEqual([...pool.urls, pool.trainer.url, policyUrl], Array(3).fill('https://10.1.2.3:8700'));
    assert.equal(listening('0.0.0.0').policyUrl, 'https://127.0.0.1:8700');
    assert.equal(listening('127.0.0.2').policyUrl, 'http://127.0.0.2:8700');
  });

  it('says what to do about empty variables, a bucket that cannot exist and a key that cannot be read', async () => {
    for (const name of neverEmpty) {
      const empty = () => readConfig({ ...environment, [name]: '' });
      assert.throws(empty, new RegExp(`${name}: expected some text; unset the variable .*, got ""`));
    }
    const short = () => readConfig({ ...environment, TEMPER_STORE: 's3://b/x' });
    assert.throws(short, /with 3 to 63 of a-z, 0-9, "\." and "-" as the bucket, .* got "s3:\/\/b\/x"/);
    const missing = readConfig({ ...environment, TEMPER_STACK_KEY_FILE: '/nofile' });
    await assert.rejects(
      missing.stackKeys?.() ?? assert.fail(),
      /TEMPER_STACK_KEY_FILE: expected a file that this account may read, got \/nofile \(ENOENT\); correct/,
    );
  });

  it('has the defaults of directories that other programs read, too, if their variables are empty', () => {
    const directories = ({ home, cacheDir, dockerConfigDir }: ReturnType<typeof readConfig>) => [
      home,
      cacheDir,
      dockerConfigDir,
    ];
    const empty = readConfig({ XDG_STATE_HOME: '', XDG_CACHE_HOME: '', DOCKER_CONFIG: '' });
    assert.deepEqual(directories(empty), directories(readConfig({})));
  });

  it('reads lists with spaces after their commas', () => {
    const { taskRoots, pool, agents } = readConfig({
      ...environment,
      TEMPER_TASK_ROOTS: '/a, /b',
      TEMPER_ENGINE_URLS: ' http://one:8000 ,https://two:8000,',
      TEMPER_AGENTS: '@me/one, /two.mjs',
    });
    assert.deepEqual(taskRoots, ['/a', '/b']);
    assert.deepEqual(pool.urls, ['http://one:8000', 'https://two:8000']);
    assert.deepEqual(agents, ['@me/one', '/two.mjs']);
    const some = { A: '1', B: '2', TEMPER_TASK_VARIABLES: 'A, B' };
    assert.deepEqual(readConfig({ ...environment, ...some }).taskVariables, { A: '1', B: '2' });
  });

  it('refuses addresses of engines and of a trainer that are not of HTTP', () => {
    for (const [name, value] of [
      ['TEMPER_ENGINE_URLS', 'gpu-1:8000'],
      ['TEMPER_ENGINE_URLS', 'http://gpu-1:8000,gpu-2'],
      ['TEMPER_TRAINER_URL', 'gpu-1:9000'],
      ['TEMPER_TRAINER_URL', ''],
    ] as const) {
      const wrong = () => readConfig({ ...environment, [name]: value });
      assert.throws(
        wrong,
        new RegExp(`${name}: expected .* begins? with http:// or https://.*, got "${value}"$`),
        value,
      );
    }
  });

  it('takes a certificate with its own key alone, and says what is wrong with another', async () => {
    const lone = { ...environment, TEMPER_LISTEN_KEY: '/key' };
    assert.throws(() => readConfig(lone), /got only TEMPER_LISTEN_KEY; set TEMPER_LISTEN_CERT, too/);
    const of = (cert: string, key: string) =>
      readConfig({ ...environment, TEMPER_LISTEN_CERT: cert, TEMPER_LISTEN_KEY: key }).listenTls?.();
    await assert.rejects(
      of('/nowhere.crt', '/key') ?? assert.fail(),
      /TEMPER_LISTEN_CERT: .* got \/nowhere\.crt \(ENOENT\)/,
    );
    const text = join(import.meta.dirname, 'config.test.ts');
    await assert.rejects(of(text, text) ?? assert.fail(), /expected a certificate and its own key as PEM, got/);
  });

  it('keeps the environment, from which a child process reads the same config', () => {
    const config = readConfig(environment);
    assert.deepEqual(readConfig(config.env), config);
  });

  it('names each invalid setting with what was expected and its value', () => {
    const wrong = { TEMPER_HOST: '..', TEMPER_POLICY_PORT: 'eighty', TEMPER_SWEEP_SHARE: '2', TEMPER_SANDBOX: 'vm' };
    assert.throws(() => readConfig(wrong), {
      message: [
        'invalid settings in the environment:',
        '  TEMPER_HOST: expected 1 to 60 letters, digits, ".", "_" or "-", and not only dots, got ".."',
        '  TEMPER_SANDBOX: Invalid option: expected one of "auto"|"docker"|"local"|"kubernetes"|"e2b", got "vm"',
        '  TEMPER_SWEEP_SHARE: expected a number above 0 and at most 1, got "2"',
        '  TEMPER_POLICY_PORT: expected a whole number from 1 to 65535, got "eighty"',
      ].join('\n'),
    });
  });
});

describe('settings', () => {
  it('describe every variable with its default and its meaning', () => {
    for (const { name, default: fallback, description } of settings) {
      assert.ok(description.length > 10, `${name} lacks a description`);
      assert.ok(fallback !== '' && fallback !== '``' && !fallback.includes('undefined'), `${name}: ${fallback}`);
    }
  });

  it('state the defaults that the reader uses', () => {
    const defaults = new Map(settings.map((setting) => [setting.name, setting.default]));
    assert.match(defaults.get('TEMPER_CAPACITY') ?? '', /^`4`, or `64` with remote sandboxes, or fewer/);
    assert.equal(readConfig({}).capacity, defaultCapacity({ home: readConfig({}).home, sandbox: 'auto' }));
    assert.match(defaults.get('TEMPER_EVALUATIONS') ?? '', /^`2`, or `16`/);
    assert.equal(readConfig({}).evaluations, 2);
    const elsewhere = readConfig({ TEMPER_SANDBOX: 'kubernetes', TEMPER_KUBERNETES_NAMESPACE: 'temper' });
    assert.deepEqual([elsewhere.evaluations, elsewhere.lanes], [16, 32]);
    assert.equal(defaults.get('TEMPER_CREATES'), `\`${readConfig({}).docker.creates}\``);
    assert.equal(defaults.get('TEMPER_SANDBOX'), '`auto`');
    assert.equal(defaults.get('TEMPER_HOST'), 'the host name');
  });
});
