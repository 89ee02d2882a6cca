import { execFile } from 'node:child_process';
import { createSign, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const serverName = 'temporal.test';

/** A certificate authority of a test, with the certificates that it has signed, as PEM files. */
export interface Authority {
  readonly caFile: string;
  readonly server: KeyPair;
  readonly client: KeyPair;
  /** A certificate of a client that has expired. */
  readonly expired: KeyPair;
}

export interface KeyPair {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes a directory with a certificate authority, a certificate of the server and one of a client. */
export async function createAuthority(): Promise<Authority & AsyncDisposable> {
  const directory = await mkdtemp(join(tmpdir(), 'temper-authority-'));
  const file = (name: string): string => join(directory, name);
  const openssl = (...words: readonly string[]) => run('openssl', words, { cwd: directory });
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const ca = ['-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2'];
  await openssl('req', '-x509', ...ec, ...ca);
  const sign = async (name: string, extensions: string, days = '2'): Promise<KeyPair> => {
    await openssl('req', ...ec, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`);
    await writeFile(file(`${name}.ext`), extensions);
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', days, '-extfile', `${name}.ext`];
    await openssl('x509', '-req', '-in', `${name}.csr`, ...signing, '-out', `${name}.pem`);
    return { certFile: file(`${name}.pem`), keyFile: file(`${name}.key`) };
  };
  return {
    caFile: file('ca.pem'),
    server: await sign('server', `subjectAltName=DNS:${serverName}\nextendedKeyUsage=serverAuth,clientAuth\n`),
    client: await sign('client', 'extendedKeyUsage=clientAuth\n'),
    expired: await sign('expired', 'extendedKeyUsage=clientAuth\n', '-1'),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Makes API keys, which are tokens (JWT), and serves the public key with which a server checks them. */
export interface KeyIssuer {
  /** The address of the public key, as a JWKS. */
  readonly keys: string;
  /** Makes a key with permissions such as `default:admin`. */
  issue(...permissions: readonly string[]): string;
}

export async function startKeyIssuer(): Promise<KeyIssuer & AsyncDisposable> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'test', alg: 'RS256', use: 'sig' };
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys: [key] })));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return {
    keys: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys.json`,
    issue(...permissions) {
      const exp = Math.floor(Date.now() / 1000) + 3600;
      const body = `${part({ alg: 'RS256', kid: 'test', typ: 'JWT' })}.${part({ sub: 'temper', permissions, exp })}`;
      return `${body}.${createSign('RSA-SHA256').update(body).sign(privateKey, 'base64url')}`;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export const pem = (file: string): Promise<Buffer> => readFile(file);
