import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { type Metadata, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { plainTarget, type TemporalTarget } from '../../../infra/temporal/connection.ts';
import { createHeartbeatClient } from '../../../infra/temporal/heartbeat-client.ts';

const { certificate, key } = createCertificate();
const request = Buffer.from('an encoded request');
const asItIs = (bytes: Buffer): Buffer => bytes;
const shortMs = 10_000;

describe('the client that can only heartbeat', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.forceShutdown();
  });

  /** Starts a gRPC server that keeps what it receives, and refuses the requests with this status code if there is one. */
  async function startServer(credentials: ServerCredentials, refusal?: status) {
    const server = new Server();
    servers.push(server);
    const received: { readonly body: string; readonly metadata: Metadata }[] = [];
    const method = {
      path: '/temporal.api.workflowservice.v1.WorkflowService/RecordActivityTaskHeartbeat',
      requestStream: false,
      responseStream: false,
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    } as const;
    server.addService(
      { heartbeat: method },
      {
        heartbeat: (
          call: { request: Buffer; metadata: Metadata },
          reply: (error: Partial<ServiceError> | null, body?: Buffer) => void,
        ) => {
          received.push({ body: call.request.toString(), metadata: call.metadata });
          if (refusal === undefined) reply(null, Buffer.alloc(0));
          else reply({ code: refusal, details: 'refused' });
        },
      },
    );
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    return { received, address: `127.0.0.1:${port}` };
  }

  const send = (target: TemporalTarget): Promise<ServiceError | null> =>
    new Promise((resolve) => createHeartbeatClient(target).send(request, shortMs, resolve));

  it('sends the encoded request and the metadata of its target, without TLS', async () => {
    const { received, address } = await startServer(ServerCredentials.createInsecure());
    assert.equal(await send({ ...plainTarget(address), metadata: { 'x-team': 'temper' } }), null);
    assert.deepEqual(
      received.map(({ body, metadata }) => [body, metadata.get('x-team')]),
      [['an encoded request', ['temper']]],
    );
  });

  it('sends the API key and the client certificate over TLS, and takes the name that the target gives', async () => {
    const mutual = ServerCredentials.createSsl(certificate, [{ cert_chain: certificate, private_key: key }], true);
    const { received, address } = await startServer(mutual);
    const tls = {
      serverNameOverride: 'temporal.test',
      serverRootCACertificate: certificate,
      clientCertPair: { crt: certificate, key },
    };
    assert.equal(await send({ ...plainTarget(address), tls, apiKey: 'a key' }), null);
    assert.deepEqual(
      received.map(({ metadata }) => metadata.get('authorization')),
      [['Bearer a key']],
    );
  });

  it('refuses a server whose certificate it does not trust', async () => {
    const { received, address } = await startServer(
      ServerCredentials.createSsl(null, [{ cert_chain: certificate, private_key: key }]),
    );
    const error = await send({ ...plainTarget(address), tls: { serverNameOverride: 'temporal.test' } });
    assert.equal(error?.code, status.UNAVAILABLE);
    assert.equal(received.length, 0);
  });

  it('tells that the server does not know the activity attempt', async () => {
    const { address } = await startServer(ServerCredentials.createInsecure(), status.NOT_FOUND);
    assert.equal((await send(plainTarget(address)))?.code, status.NOT_FOUND);
  });
});

/** Creates a self-signed certificate of `temporal.test`, and its key. */
function createCertificate() {
  const directory = mkdtempSync(join(tmpdir(), 'temper-certificate-'));
  const [certificateFile, keyFile] = [join(directory, 'certificate.pem'), join(directory, 'key.pem')];
  const kind = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=temporal.test';
  const name = ['-addext', 'subjectAltName=DNS:temporal.test'];
  try {
    execFileSync('openssl', ['req', ...kind.split(' '), ...name, '-keyout', keyFile, '-out', certificateFile], {
      stdio: 'pipe',
    });
    return { certificate: readFileSync(certificateFile), key: readFileSync(keyFile) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
