import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

/**
 * The time that one operation waits for a store that is away or busy, in milliseconds. It is shorter than the limit of the
 * shortest stage: Temporal retries the stage then, for minutes.
 */
const patienceMs = 15_000;
const firstPauseMs = 100;
const longestPauseMs = 2_000;

/** Runs requests to a store. The call learns how many tries came before, of which any may have had its effect. */
export interface Requests {
  run<Result>(what: string, call: (triesBefore: number) => Promise<Result>): Promise<Result>;
}

/**
 * Creates the runner of requests: it makes a limited number at a time, repeats those that may succeed later, and attributes the
 * failure of the others. A call that waits for its turn loses no time of its own. It must not run another one within.
 */
export function createRequests(location: string, atOnce: number): Requests {
  const limit = pLimit(atOnce);
  return {
    async run(what, call) {
      let startedAt: number | undefined;
      for (let tries = 0; ; tries += 1) {
        try {
          return await limit(() => {
            startedAt ??= performance.now();
            return call(tries);
          });
        } catch (error) {
          if (error instanceof TemperFailure) throw error;
          const waitedMs = performance.now() - (startedAt ?? 0);
          if (!isPassing(error) || waitedMs > patienceMs) throw failureOf(error, `${what} in ${location}`);
          const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** tries);
          // Many processes must not come back at the same moment.
          await sleep(pauseMs * (0.5 + Math.random()));
        }
      }
    },
  };
}

/** The HTTP status of a store's answer; null if there was no answer. */
export function statusOf(error: unknown): number | null {
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
  return $metadata?.httpStatusCode ?? null;
}

export const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error');

/** Whether an object is not there. A bucket that is not there is another matter. */
export const isMissing = (error: unknown): boolean => statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket';

/** Whether the object was not as the request required it to be. */
export const isConflict = (error: unknown): boolean => statusOf(error) === 412;

/** Names of errors that no repetition changes, although the store did not answer. */
const finalNames = ['CredentialsProviderError', 'TypeError', 'RangeError'];
const noRegion = 'Region is missing';
/** Names of refusals that may pass: the SDK has corrected its clock by then. */
const passingNames = ['RequestTimeTooSkewed', 'RequestTimeout'];

/** Whether the same request may succeed later: no answer, a busy store, or two conditional writes at the same moment. */
function isPassing(error: unknown): boolean {
  const status = statusOf(error);
  if (status === null) return !finalNames.includes(nameOf(error)) && (error as Error).message !== noRegion;
  return status >= 500 || status === 429 || status === 409 || passingNames.includes(nameOf(error));
}

interface Answer {
  readonly status: number | null;
  readonly name: string;
  readonly text: string;
}

/** Attributes the failure of a request. The SDK's own error is not passed on: it holds the signed request. */
function failureOf(error: unknown, what: string): TemperFailure {
  const name = nameOf(error);
  const status = statusOf(error);
  const text = error instanceof Error && error.message !== 'UnknownError' ? error.message : '';
  const got = [status === null ? null : `HTTP ${status}`, name === 'Error' ? null : name, text]
    .filter(Boolean)
    .join(' ');
  if (status === 507) return new TemperFailure('DiskFull', `no space left to ${what}: ${got}; the stage is retried`);
  return new TemperFailure('StoreUnavailable', `cannot ${what}: ${got}; ${remedyOf({ status, name, text })}`);
}

/** The names by which stores refuse credentials and a region, mostly with HTTP 400. */
const expiredNames = ['ExpiredToken', 'ExpiredTokenException', 'InvalidToken', 'TokenRefreshRequired'];
const wrongRegionNames = ['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IllegalLocationConstraintException'];

function remedyOf({ status, name, text }: Answer): string {
  if (name === 'NoSuchBucket') return 'create the bucket, or correct TEMPER_STORE';
  if (name === 'CredentialsProviderError')
    return 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role';
  if (expiredNames.includes(name)) return 'the credentials have expired or are not valid; set new ones';
  if (wrongRegionNames.includes(name)) return 'the bucket is in another region: set TEMPER_STORE_REGION';
  if (status === 403 || status === 401) return 'check the credentials and their rights';
  if (status === 301 || status === 307) return 'the bucket is in another region: set TEMPER_STORE_REGION';
  if (text === noRegion) return 'set TEMPER_STORE_REGION';
  if (status === null) return 'check TEMPER_STORE_ENDPOINT and the network';
  return 'the stage is retried if that may help';
}

/** Runs work whose answer may be an expected error; null then. */
export async function nullIf<Value>(
  expected: (error: unknown) => boolean,
  work: () => Promise<Value>,
): Promise<Value | null> {
  try {
    return await work();
  } catch (error) {
    if (expected(error)) return null;
    throw error;
  }
}
