import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { errorMessage } from '../workflows/contracts/error-message.ts';
import { readKeyFile } from './key-file.ts';

/** A certificate and its private key, as PEM. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
}

/** A file, and the setting or option that names it. */
interface NamedFile {
  readonly name: string;
  readonly path: string;
}

/** Reads the certificate of a server and its key. Throws an Error that names both files if a server could not use them. */
export async function readServerTls(cert: NamedFile, key: NamedFile): Promise<ServerTls> {
  const tls = { cert: await readKeyFile(cert.name, cert.path), key: await readKeyFile(key.name, key.path) };
  try {
    // A file that is about to be written is empty, which a secure context takes for no certificate and no key.
    new X509Certificate(tls.cert);
    createPrivateKey(tls.key);
    createSecureContext(tls);
  } catch (cause) {
    throw new Error(
      `${cert.name}=${cert.path}, ${key.name}=${key.path}: expected a certificate and its own key as PEM, got ${errorMessage(cause)}`,
      { cause },
    );
  }
  return tls;
}
