import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { clientCertificateOf, expiryText, renewal } from '../infra/temporal/client-certificate.ts';
import { connectClient, type TemporalTarget } from '../infra/temporal/connection.ts';
import { type TemporalSettings, temporalTarget } from '../infra/temporal/temporal-target.ts';
import { errorMessage } from '../workflows/contracts/error-message.ts';

const lookEveryMs = 10_000;

interface Watch {
  readonly settings: TemporalSettings;
  /** The target with the credentials that this process has read at its start. */
  readonly used: TemporalTarget;
  readonly log: Pick<Logger, 'warn'>;
  /** Receives what an operator must know about the end of the certificate, at first and whenever it changes; null: nothing. */
  readonly noteExpiry?: ((text: string | null) => Promise<void>) | undefined;
}

/**
 * Resolves to true once the files that the environment names hold other credentials (certificate, key, authority, API key of a
 * profile) than this process uses, and the Temporal server accepts them; to false if the signal aborts before. A connection keeps
 * the credentials that it was made with, and a server closes connections every few minutes: with a certificate that has expired,
 * a process would be cut off for good.
 */
export async function credentialsReplaced(watch: Watch, signal: AbortSignal): Promise<boolean> {
  const { settings, used, log } = watch;
  let said: string | null | undefined;
  let refusal: string | null = null;
  while (!signal.aborted) {
    said = await sayExpiry(watch, said);
    try {
      if (await acceptsOthers(temporalTarget(settings), used)) return true;
      refusal = null;
    } catch (error) {
      // A file may be half written, or the certificate is there and its key follows.
      const reason = errorMessage(error);
      if (reason !== refusal) log.warn(`new credentials for the Temporal server cannot be used yet: ${reason}`);
      refusal = reason;
    }
    await sleep(lookEveryMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
  return false;
}

/** Says what changed since it was last said, and returns what has been said. What could not be noted is said again. */
async function sayExpiry(
  { used, log, noteExpiry }: Watch,
  said: string | null | undefined,
): Promise<string | null | undefined> {
  const text = textOf(used);
  if (text === said) return said;
  if (text !== null) log.warn(text);
  try {
    await noteExpiry?.(text);
    return text;
  } catch (error) {
    log.warn({ error }, 'could not write the note about the client certificate');
    return said;
  }
}

function textOf(target: TemporalTarget): string | null {
  const certificate = clientCertificateOf(target);
  const expiry = certificate === null ? null : expiryText(certificate);
  return expiry === null ? null : `the client certificate for the Temporal server ${expiry}: ${renewal}`;
}

/** Whether the target has other credentials than those in use. Throws if the server does not accept them. */
async function acceptsOthers(target: TemporalTarget, used: TemporalTarget): Promise<boolean> {
  if (isDeepStrictEqual(credentialsOf(target), credentialsOf(used))) return false;
  const { close } = await connectClient({ ...used, ...credentialsOf(target) });
  await close();
  return true;
}

const credentialsOf = ({ tls, apiKey, metadata }: TemporalTarget) => ({ tls, apiKey, metadata });
