import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createServer } from 'node:tls';
import { findTlsFault, type TlsTarget } from '../../../infra/temporal/tls-fault.ts';
import {
  type Authority,
  createAuthority,
  type KeyPair,
  pem,
  serverName,
} from '../../helpers/temporal/production/credentials.ts';

describe('the fault of a TLS connection', () => {
  const undo = new AsyncDisposableStack();
  let authority: Authority;
  let other: Authority;
  let address: string;

  before(async () => {
    authority = undo.use(await createAuthority());
    other = undo.use(await createAuthority());
    const { certFile, keyFile } = authority.server;
    const files = { cert: await pem(certFile), key: await pem(keyFile), ca: await pem(authority.caFile) };
    const strict = { ...files, requestCert: true, rejectUnauthorized: true };
    address = await listening(createServer(strict, sendSettings));
  });
  after(() => undo.disposeAsync());

  async function listening(server: Server): Promise<string> {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    undo.defer(() => void server.close());
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const trusting = async ({ caFile }: Authority, { certFile, keyFile }: KeyPair): Promise<TlsTarget['tls']> => ({
    serverRootCACertificate: await pem(caFile),
    clientCertPair: { crt: await pem(certFile), key: await pem(keyFile) },
    serverNameOverride: serverName,
  });
  const faultWith = (tls: TlsTarget['tls']) => findTlsFault({ address, tls });

  it('is null where both sides accept each other, and where nothing listens', async () => {
    const tls = await trusting(authority, authority.client);
    assert.equal(await faultWith(tls), null);
    const gone = createPlainServer();
    const nowhere = await listening(gone);
    gone.close();
    await once(gone, 'close');
    assert.equal(await findTlsFault({ address: nowhere, tls }), null);
    assert.equal(await findTlsFault({ address: nowhere, tls: false }), null);
  });

  it('is the date of a client certificate that has expired', async () => {
    const fault = await faultWith(await trusting(authority, authority.expired));
    assert.match(String(fault), /TEMPORAL_TLS_CLIENT_CERT_PATH expired at .* GMT/);
  });

  it('is a client certificate of an authority that the server does not trust, or none at all', async () => {
    const refused = await faultWith(await trusting(authority, other.client));
    assert.match(String(refused), /refuses the certificate of TEMPORAL_TLS_CLIENT_CERT_PATH, which is of CN=authority/);
    const { caFile } = authority;
    const none = await faultWith({ serverRootCACertificate: await pem(caFile), serverNameOverride: serverName });
    assert.match(String(none), /wants a client certificate/);
  });

  it('is a certificate whose key is missing, or of another one', async () => {
    const { client } = authority;
    const [crt, key] = [await pem(client.certFile), await pem(other.client.keyFile)];
    assert.match(String(await faultWith({ clientCertPair: { crt, key } })), /cannot be used with the key/);
    assert.match(String(await faultWith({ clientCertPair: { crt, key: Buffer.of() } })), /missing or empty/);
  });

  it('is an authority or a name that is not that of the server', async () => {
    const unknown = await faultWith(await trusting(other, authority.client));
    assert.match(String(unknown), /another authority: TEMPORAL_TLS_SERVER_CA_CERT_PATH/);
    const { serverNameOverride: _, ...nameless } = (await trusting(authority, authority.client)) as object & {
      serverNameOverride?: string;
    };
    assert.match(String(await faultWith(nameless)), /set TEMPORAL_TLS_SERVER_NAME/);
  });

  it('is TLS on one side only', async () => {
    assert.match(String(await faultWith(false)), /speaks TLS: set TEMPORAL_TLS_SERVER_CA_CERT_PATH/);
    const plain = await listening(createPlainServer(sendSettings));
    assert.match(String(await findTlsFault({ address: plain, tls: true })), /does not speak TLS/);
  });
});

/** Begins a connection as a server of HTTP/2 does. */
function sendSettings(socket: Socket): void {
  socket.on('error', () => {});
  socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
}
