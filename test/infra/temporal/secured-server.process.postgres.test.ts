import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type ServiceError, status } from '@grpc/grpc-js';
import { msToTs } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';
import {
  configuredTarget,
  connectClient,
  connectWorker,
  type TemporalTarget,
} from '../../../infra/temporal/connection.ts';
import { createHeartbeatClient } from '../../../infra/temporal/heartbeat-client.ts';
import { type CliRun, cliOn } from '../../helpers/cli.ts';
import {
  type Authority,
  createAuthority,
  type KeyIssuer,
  serverName,
  startKeyIssuer,
} from '../../helpers/temporal/production/credentials.ts';
import { createNamespace } from '../../helpers/temporal/production/namespace.ts';
import { type ProductionServer, startProductionServer } from '../../helpers/temporal/production/server.ts';

const namespace = 'secured';
const callMs = 60_000;

describe('a Temporal server that demands a client certificate and an API key', () => {
  const undo = new AsyncDisposableStack();
  let server: ProductionServer;
  let authority: Authority;
  let other: Authority;
  let issuer: KeyIssuer;
  let home: string;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-secured-'));
    undo.defer(() => rm(home, { recursive: true, force: true }));
    authority = undo.use(await createAuthority());
    other = undo.use(await createAuthority());
    issuer = undo.use(await startKeyIssuer());
    server = await startProductionServer({
      tls: { ...authority.server, caFile: authority.caFile, requireClient: true, serverName },
      keys: issuer.keys,
    });
    undo.defer(() => server.close());
    await createNamespace(targetOf({ TEMPORAL_API_KEY: issuer.issue('temporal-system:admin') }));
  });
  after(() => undo.disposeAsync());

  /** The variables of a client that may do everything in the namespace, with some replaced. */
  const variables = (change: Readonly<Record<string, string | undefined>> = {}) => {
    const all = {
      TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_API_KEY: issuer.issue(`${namespace}:admin`),
      TEMPORAL_TLS_SERVER_NAME: serverName,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: authority.caFile,
      TEMPORAL_TLS_CLIENT_CERT_PATH: authority.client.certFile,
      TEMPORAL_TLS_CLIENT_KEY_PATH: authority.client.keyFile,
      ...change,
    };
    return Object.fromEntries(
      Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
  };
  const targetOf = (change: Readonly<Record<string, string | undefined>> = {}): TemporalTarget =>
    configuredTarget(variables(change)) ?? assert.fail('expected a target');
  const temper = (change: Readonly<Record<string, string | undefined>>, ...args: readonly string[]): Promise<CliRun> =>
    cliOn(home, { address: server.address, namespace }, variables(change)).run(...args);

  /** Mistakes of a client, and the advice that it receives. */
  const wrong = {
    'an unknown authority': () => [
      { TEMPORAL_TLS_SERVER_CA_CERT_PATH: other.caFile },
      /certificate is of another authority: TEMPORAL_TLS_SERVER_CA_CERT_PATH/,
    ],
    'another name of the server': () => [
      { TEMPORAL_TLS_SERVER_NAME: undefined },
      /altnames|cert's list.*TEMPORAL_TLS_SERVER_NAME/,
    ],
    'no TLS': () => [
      Object.fromEntries(Object.keys(variables()).flatMap((one) => (/TLS|KEY/.test(one) ? [[one, undefined]] : []))),
      /speaks TLS: set TEMPORAL_TLS_SERVER_CA_CERT_PATH/,
    ],
    'no client certificate': () => [
      { TEMPORAL_TLS_CLIENT_CERT_PATH: undefined, TEMPORAL_TLS_CLIENT_KEY_PATH: undefined },
      /wants a client certificate: set TEMPORAL_TLS_CLIENT_CERT_PATH/,
    ],
    'an expired certificate': () => [
      {
        TEMPORAL_TLS_CLIENT_CERT_PATH: authority.expired.certFile,
        TEMPORAL_TLS_CLIENT_KEY_PATH: authority.expired.keyFile,
      },
      /TEMPORAL_TLS_CLIENT_CERT_PATH expired at/,
    ],
    'a certificate with another key': () => [
      { TEMPORAL_TLS_CLIENT_KEY_PATH: other.client.keyFile },
      /cannot be used with the key of TEMPORAL_TLS_CLIENT_KEY_PATH/,
    ],
    'a certificate of another authority': () => [
      { TEMPORAL_TLS_CLIENT_CERT_PATH: other.client.certFile, TEMPORAL_TLS_CLIENT_KEY_PATH: other.client.keyFile },
      /refuses the certificate of TEMPORAL_TLS_CLIENT_CERT_PATH, which is of CN=authority/,
    ],
    'no key': () => [{ TEMPORAL_API_KEY: undefined }, /TEMPORAL_API_KEY/],
    'a key of another namespace': () => [{ TEMPORAL_API_KEY: issuer.issue('elsewhere:admin') }, /TEMPORAL_API_KEY/],
    'a key that is no key': () => [{ TEMPORAL_API_KEY: 'nonsense' }, /TEMPORAL_API_KEY/],
    'an unknown namespace': () => [
      { TEMPORAL_NAMESPACE: 'nowhere', TEMPORAL_API_KEY: issuer.issue('nowhere:admin') },
      /TEMPORAL_NAMESPACE/,
    ],
  } satisfies Record<string, () => [Readonly<Record<string, string | undefined>>, RegExp]>;

  it('connects clients and workers that have both', async () => {
    for (const connect of [connectClient, connectWorker]) {
      const { client, close } = await connect(targetOf());
      assert.equal((await client.workflow.count()).count, 0);
      await close();
    }
  });

  // A client tries for ten seconds to connect to a server that does not trust it.
  describe('refuses clients and workers, and says what to do', { concurrency: true }, () => {
    for (const [what, change] of Object.entries(wrong)) {
      it(`with ${what}`, async () => {
        const [variables, remedy] = change();
        const target = targetOf(variables);
        await Promise.all([connectClient, connectWorker].map((connect) => assert.rejects(connect(target), remedy)));
      });
    }
  });

  it('ends a worker at its start that it does not accept', async () => {
    const { code, stdout, stderr } = await temper({ TEMPORAL_API_KEY: 'nonsense' }, 'worker', 'control');
    assert.equal(code, 1);
    assert.match(`${stdout}${stderr}`, /correct TEMPORAL_API_KEY/);
  });

  it('gets search attributes from temper doctor', async () => {
    const { stdout } = await temper({}, 'doctor', '--register');
    assert.match(stdout, /search attributes +all registered/);
  });

  it('takes heartbeats from the client that can do nothing else', async () => {
    const { client, connection, close } = await connectClient(targetOf());
    const service = connection.workflowService;
    await client.workflow.start('manual', { workflowId: 'manual', taskQueue: 'manual' });
    const soon = <Reply>(call: () => Promise<Reply>) => connection.withDeadline(Date.now() + callMs, call);
    const poll = { namespace, taskQueue: { name: 'manual' } };
    const { taskToken } = await soon(() => service.pollWorkflowTaskQueue(poll));
    await service.respondWorkflowTaskCompleted({ namespace, taskToken, commands: [activityCommand] });
    const activity = await soon(() => service.pollActivityTaskQueue(poll));
    const request = proto.temporal.api.workflowservice.v1.RecordActivityTaskHeartbeatRequest.encode({
      namespace,
      taskToken: activity.taskToken,
    }).finish();
    const send = (target: TemporalTarget): Promise<ServiceError | null> =>
      new Promise((resolve) => createHeartbeatClient(target).send(request, callMs, resolve));
    assert.equal(await send(targetOf()), null);
    assert.equal((await send(targetOf({ TEMPORAL_API_KEY: undefined })))?.code, status.PERMISSION_DENIED);
    assert.equal((await send(targetOf(wrong['an unknown authority']()[0])))?.code, status.UNAVAILABLE);
    const { raw } = await client.workflow.getHandle('manual').describe();
    assert.ok(raw.pendingActivities?.[0]?.lastHeartbeatTime);
    await close();
  });
});

/** Schedules an activity that has to heartbeat. */
const activityCommand = {
  commandType: proto.temporal.api.enums.v1.CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
  scheduleActivityTaskCommandAttributes: {
    activityId: '1',
    activityType: { name: 'any' },
    taskQueue: { name: 'manual' },
    startToCloseTimeout: msToTs('10 minutes'),
    heartbeatTimeout: msToTs('1 minute'),
  },
};
