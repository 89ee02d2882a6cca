import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { configuredTarget, connectClient, connectWorker, plainTarget } from '../../../infra/temporal/connection.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import '../../helpers/temporal/quiet-runtime.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal/temporal.ts';

describe('the configured Temporal server', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-profile-'));
    const toml = [
      '[profile.cloud]',
      'address = "temper.a1b2c.tmprl.cloud:7233"',
      'namespace = "temper.a1b2c"',
      'api_key = "from-the-file"',
      '[profile.mtls]',
      'address = "temporal.example:7233"',
      '[profile.mtls.tls]',
      'server_name = "temporal.example"',
      'client_cert_data = "a certificate"',
      'client_key_data = "a key"',
    ].join('\n');
    await writeFile(join(directory, 'temporal.toml'), toml);
    await writeFile(join(directory, 'broken.toml'), '[profile');
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const env = (more: Record<string, string>): Record<string, string> => ({
    TEMPORAL_CONFIG_FILE: join(directory, 'temporal.toml'),
    ...more,
  });

  it('is absent when neither the environment nor a profile names one', () => {
    assert.equal(configuredTarget(env({})), undefined);
  });

  it('is the one in the environment, without TLS by default', () => {
    const target = configuredTarget(env({ TEMPORAL_ADDRESS: 'here:1', TEMPORAL_NAMESPACE: 'n' }));
    assert.deepEqual(target, { address: 'here:1', namespace: 'n', tls: false, apiKey: undefined, metadata: {} });
  });

  it('is the one in the profile, where an API key turns TLS on and the environment overrides single values', () => {
    const target = configuredTarget(env({ TEMPORAL_PROFILE: 'cloud', TEMPORAL_API_KEY: 'from-the-environment' }));
    assert.deepEqual(
      [target?.address, target?.namespace, target?.tls, target?.apiKey],
      ['temper.a1b2c.tmprl.cloud:7233', 'temper.a1b2c', true, 'from-the-environment'],
    );
  });

  it('has the client certificate of its profile', () => {
    const { tls } = configuredTarget(env({}), 'mtls') ?? {};
    assert.ok(tls !== undefined && typeof tls === 'object' && tls !== null);
    assert.equal(tls.serverNameOverride, 'temporal.example');
    assert.equal(Buffer.from(tls.clientCertPair?.key ?? []).toString(), 'a key');
  });

  it('is an error if the profile is missing or the file is not valid TOML', () => {
    assert.throws(
      () => configuredTarget(env({ TEMPORAL_PROFILE: 'absent' })),
      /expected a readable Temporal profile.*absent/,
    );
    const broken = { TEMPORAL_CONFIG_FILE: join(directory, 'broken.toml') };
    assert.throws(() => configuredTarget(broken), /expected a readable Temporal profile/);
  });

  it('is an error that names the file of a certificate that is not there', () => {
    assert.throws(
      () => configuredTarget(env({ TEMPORAL_ADDRESS: 'here:1', TEMPORAL_TLS_CLIENT_CERT_PATH: '/nowhere/client.pem' })),
      /\/nowhere\/client\.pem.*TEMPORAL_TLS_/,
    );
  });
});

describe('connecting', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });
  after(() => server.close());

  it('works for clients and workers', async () => {
    for (const connect of [connectClient, connectWorker]) {
      const { client, close } = await connect(server.target);
      assert.equal((await client.workflow.count()).count, 0);
      await close();
    }
  });

  it('fails with the name of an unknown namespace and what to do', async () => {
    for (const connect of [connectClient, connectWorker]) {
      await assert.rejects(connect(plainTarget(server.address, 'nowhere')), /namespace nowhere .*create the namespace/);
    }
  });

  it('fails with the address if no server listens on the port', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    await assert.rejects(connectWorker(plainTarget(address)), new RegExp(`no Temporal server at ${address}`));
  });
});
