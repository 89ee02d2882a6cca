import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Makes a certificate that a TLS server of a test shows for all of its names and addresses, and that is its own authority. */
export async function createCertificate(...names: readonly string[]) {
  const directory = await mkdtemp(join(tmpdir(), 'temper-certificate-'));
  try {
    const subjects = names.map((name) => `${isIP(name) === 0 ? 'DNS' : 'IP'}:${name}`).join(',');
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const files = ['-keyout', 'key.pem', '-out', 'cert.pem'];
    const subject = ['-subj', `/CN=${names[0]}`, '-addext', `subjectAltName=${subjects}`];
    await run('openssl', ['req', ...kind, ...files, ...subject], { cwd: directory });
    const read = (file: string): Promise<string> => readFile(join(directory, file), 'utf8');
    return { cert: await read('cert.pem'), key: await read('key.pem') };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export const fingerprintOf = (cert: string): string => new X509Certificate(cert).fingerprint256;

/** Returns the fingerprint of the certificate that the server of an address shows to a new connection. */
export async function certificateAt(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.destroy();
  }
}
