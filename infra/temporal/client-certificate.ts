import { X509Certificate } from 'node:crypto';
import type { TemporalTarget } from './connection.ts';

/** The longest time before the end of a certificate at which an operator learns of it. One that lasts for days has a shorter one. */
const noticeMs = 14 * 86_400_000;
/** The part of a certificate's life. What renews certificates by itself usually does so when a third is left. */
const noticePart = 1 / 4;

/** The certificate by which a Temporal server knows its client. */
export interface ClientCertificate {
  readonly subject: string;
  readonly expiresAt: Date;
  /** The time from which an operator learns that it ends. */
  readonly noticeAt: Date;
}

/** Returns the certificate with which temper connects; null if there is none, or none that can be read. */
export function clientCertificateOf({ tls }: Pick<TemporalTarget, 'tls'>): ClientCertificate | null {
  const crt = typeof tls === 'object' ? tls?.clientCertPair?.crt : undefined;
  if (crt === undefined) return null;
  try {
    const { subject, validFrom, validTo } = new X509Certificate(Buffer.from(crt));
    const expiresAt = Date.parse(validTo);
    const lastsMs = expiresAt - Date.parse(validFrom);
    return {
      subject: subject.replaceAll('\n', ', '),
      expiresAt: new Date(expiresAt),
      noticeAt: new Date(expiresAt - Math.min(noticeMs, lastsMs * noticePart)),
    };
  } catch {
    return null; // the connection says what is wrong with it
  }
}

/** Says when a certificate ends, if that is soon, or that it has ended; null if neither. */
export function expiryText({ expiresAt, noticeAt }: ClientCertificate, nowMs: number = Date.now()): string | null {
  if (nowMs < noticeAt.getTime()) return null;
  return `${nowMs < expiresAt.getTime() ? 'expires' : 'expired'} at ${expiresAt.toISOString()}`;
}

/** The remedy for a certificate that ends. */
export const renewal = 'have it renewed and replace its files, which running workers notice by themselves';
