import { X509Certificate } from 'node:crypto';
import { connect, type SecureContextOptions } from 'node:tls';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { errorMessage } from '../../workflows/contracts/error-message.ts';

/** A server, and the settings of TLS for connections to it; false: none. */
export interface TlsTarget {
  readonly address: string;
  readonly tls: Exclude<NativeConnectionOptions['tls'], undefined>;
}

/**
 * The longest silence of the server. It may refuse the certificate of a client after the client's part of the handshake, and a busy
 * one takes its time; one that accepts speaks first.
 */
const silenceMs = 5_000;

/**
 * Finds out, by a handshake of its own, what is wrong with the TLS of a connection: gRPC says only that there is none. Returns
 * what is wrong and what to do; null if it finds nothing.
 */
export async function findTlsFault(target: TlsTarget): Promise<string | null> {
  const { serverNameOverride: name, ...files } = typeof target.tls === 'object' ? (target.tls ?? {}) : {};
  if (target.tls === false) {
    const speaksTls = await shakeHands(target.address, { rejectUnauthorized: false });
    return speaksTls === null || speaksTls instanceof Refused ? wantsTls : null;
  }
  const { crt, key } = files.clientCertPair ?? {};
  if (isEmpty(crt) !== isEmpty(key)) return halfAPair;
  const error = await shakeHands(target.address, {
    ...(files.serverRootCACertificate && { ca: Buffer.from(files.serverRootCACertificate) }),
    ...(crt && key && { cert: Buffer.from(crt), key: Buffer.from(key) }),
    ...(name !== undefined && { servername: name }),
  });
  return error === null ? null : faultOf(error, crt);
}

const isEmpty = (pem: Uint8Array | undefined): boolean => pem === undefined || pem.length === 0;

const wantsTls =
  'the server speaks TLS: set TEMPORAL_TLS_SERVER_CA_CERT_PATH to its authority, or TEMPORAL_TLS=true if that is a public one';
const halfAPair =
  'set both TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH: one of them is missing or empty';

interface HandshakeOptions extends SecureContextOptions {
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** Connects, and returns the error of the server or of this side; null if both accept. */
function shakeHands(address: string, options: HandshakeOptions): Promise<Error | null> {
  const { hostname: host, port } = new URL(`grpc://${address}`);
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  try {
    const socket = connect({
      host: host.replace(/^\[|\]$/g, ''),
      port: Number(port || 7233),
      ALPNProtocols: ['h2'],
      ...options,
    });
    let secure = false;
    const end = (error: Error | null): void => {
      socket.destroy();
      resolve(error);
    };
    socket.setTimeout(silenceMs, () => end(secure ? null : new Error('no answer')));
    socket.on('error', (error) => end(secure || isAlert(error) ? new Refused(reasonOf(error)) : error));
    socket.on('close', () => end(new (secure ? Refused : Error)('it closed the connection')));
    socket.on('data', () => end(null));
    socket.on('secureConnect', () => {
      secure = true;
    });
  } catch (error) {
    // The certificate or the key is no PEM, or they are not of one another.
    resolve(new UnusablePair(errorMessage(error), { cause: error }));
  }
  return promise;
}

/** The files of this side do not make a certificate with its key. */
class UnusablePair extends Error {}
/** The server ended the handshake, or closed the connection right after it. */
class Refused extends Error {}

const codeOf = (error: Error): string => ('code' in error ? String(error.code) : '');
const isAlert = (error: Error): boolean => /ALERT/.test(codeOf(error));
const reasonOf = (error: Error): string => ('reason' in error ? String(error.reason) : error.message);

function faultOf(error: Error, crt: Uint8Array | undefined): string | null {
  const code = codeOf(error);
  if (error instanceof UnusablePair) {
    return (
      `the certificate of TEMPORAL_TLS_CLIENT_CERT_PATH cannot be used with the key of TEMPORAL_TLS_CLIENT_KEY_PATH ` +
      `(${error.message}): name a certificate and its own key, both as PEM`
    );
  }
  if (error instanceof Refused) return refusalOf(error, crt);
  if (code === 'CERT_HAS_EXPIRED') return 'the certificate of the server has expired: renew it at the server';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `${error.message}: set TEMPORAL_TLS_SERVER_NAME to a name of the server's certificate`;
  }
  if (/^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/.test(code)) {
    return "the server's certificate is of another authority: TEMPORAL_TLS_SERVER_CA_CERT_PATH must name that of the server";
  }
  // An answer that is no TLS at all.
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(code)) {
    return 'the server does not speak TLS: unset TEMPORAL_TLS_* and TEMPORAL_API_KEY, or correct TEMPORAL_ADDRESS';
  }
  return null;
}

/** Says what a server may have against the certificate of this client. */
function refusalOf({ message }: Refused, crt: Uint8Array | undefined): string {
  if (crt === undefined) {
    return 'the server wants a client certificate: set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH';
  }
  const { validTo, issuer } = new X509Certificate(Buffer.from(crt));
  if (Date.parse(validTo) < Date.now()) {
    return `the certificate of TEMPORAL_TLS_CLIENT_CERT_PATH expired at ${validTo}: have it renewed`;
  }
  return (
    `the server refuses the certificate of TEMPORAL_TLS_CLIENT_CERT_PATH, which is of ${issuer.replaceAll('\n', ', ')} ` +
    `(${message}): name one of an authority that the server trusts`
  );
}
