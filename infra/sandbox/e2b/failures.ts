import { AuthenticationError, RateLimitError, SandboxError, ServiceBusyError } from 'e2b';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { ThrottledFailure } from '../../../workflows/contracts/throttled-failure.ts';
import { LastingRefusal, SandboxFailure } from '../failure.ts';
import { type AskedPause, noteAskedPause } from './retry-after.ts';

/** The HTTP status of an answer that the SDK made an error of; undefined if no answer came. */
export function statusOf(error: unknown): number | undefined {
  if (error instanceof AuthenticationError) return 401;
  if (error instanceof SandboxError || error instanceof ServiceBusyError) return error.statusCode;
  return undefined;
}

/** Whether a request may have had its effect although it failed: no answer came, or one from a gateway in between. */
export function isAmbiguous(error: unknown): boolean {
  if (error instanceof AuthenticationError) return false;
  const status = statusOf(error);
  return status === undefined || status >= 500;
}

/** Runs one call of the API, and explains its failure; `what` completes "could not …". */
export async function callApi<T>(what: string, call: () => Promise<T>): Promise<T> {
  const asked: AskedPause = { ms: null };
  try {
    return await noteAskedPause(asked, call);
  } catch (cause) {
    if (cause instanceof TemperFailure || (cause instanceof Error && cause.name === 'AbortError')) throw cause;
    if (cause instanceof RateLimitError) throw throttled(what, cause, asked);
    throw explained(what, cause);
  }
}

const evidenceOf = (cause: unknown): string => errorMessage(cause).slice(0, 500);

function explained(what: string, cause: unknown): TemperFailure {
  const evidence = evidenceOf(cause);
  const details = { cause, evidence };
  const status = statusOf(cause);
  if (status === 401 || status === 403) {
    return new LastingRefusal(
      `could not ${what}: the E2B server refused the API key (${status}); check E2B_API_KEY and TEMPER_E2B_URL`,
      details,
    );
  }
  if (status === 400 && /timeout cannot be greater/i.test(evidence)) {
    return new SandboxFailure(
      'UnsupportedTask',
      `could not ${what}: the account allows no sandbox that lives as long as agent and tests may take; lower agentTimeoutSec or engineWaitingSec, or set TEMPER_E2B_HOURS to the account's limit`,
      details,
    );
  }
  if (status === 503) {
    return new SandboxFailure('SandboxUnavailable', `could not ${what}: the E2B server has no room now`, details);
  }
  if (status === undefined || status >= 500) {
    const got = status === undefined ? 'no answer' : `status ${status}`;
    return new SandboxFailure(
      'SandboxUnavailable',
      `could not ${what}: expected the E2B server to answer, got ${got}; check TEMPER_E2B_URL and the network`,
      details,
    );
  }
  return new SandboxFailure('Internal', `could not ${what}: the E2B server refused the request (${status})`, details);
}

/** Statuses with which a server with E2B's API may refuse to list sandboxes: for the key, for the time it took, or for now. */
const ownRefusals: ReadonlySet<number> = new Set([401, 403, 408, 429]);

/** Explains a server that has no list of sandboxes, which every server with E2B's API has. */
export function orWrongAddress(cause: unknown): never {
  const status = statusOf(cause) ?? 500;
  if (status >= 500 || ownRefusals.has(status)) throw cause;
  const text = `expected a server with E2B's API, got one without (${status}); correct TEMPER_E2B_URL`;
  throw new LastingRefusal(text, { cause, evidence: evidenceOf(cause) });
}

/** Returns a refusal for too many requests. */
function throttled(what: string, cause: RateLimitError, { ms }: AskedPause): ThrottledFailure {
  const evidence = evidenceOf(cause);
  const isQuota = /maximum number/i.test(evidence);
  const why = isQuota
    ? "the account has its most sandboxes at once; lower TEMPER_CAPACITY, or raise the account's limit"
    : 'the E2B server throttles this account; the stage is retried later';
  return new ThrottledFailure(`could not ${what}: ${why} (${evidence})`, ms, { cause });
}
