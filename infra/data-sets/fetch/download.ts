import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { basename } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fetch } from 'undici';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { createCached } from './cache.ts';

/** The checksum of a file, as its publisher states it. */
export type Checksum =
  | { readonly kind: 'sha256'; readonly digest: string }
  /** The object id that git gives a file, used by hubs that keep small files in git: SHA-1 over a size header and the file. */
  | { readonly kind: 'git-blob'; readonly digest: string; readonly size: number };

/** The time that may pass without data from the server. */
const idleTimeoutMs = 60_000;

/** The right to read files of a server. */
export interface Access {
  /** May hold a secret. They are dropped by a redirect to another server. */
  readonly headers: Readonly<Record<string, string>>;
  /** The advice for a status that refuses a file. */
  remedy(status: number): string;
}

/** Downloads a file into the cache, once per host, and verifies its checksum. Throws TemperFailure UnknownTask. */
export async function download(
  url: string,
  target: string,
  checksum: Checksum | null,
  access: Access | null = null,
): Promise<void> {
  await createCached(target, (draft) => fetchInto(url, draft, { checksum, access }));
}

interface Fetching {
  readonly checksum: Checksum | null;
  readonly access: Access | null;
}

async function fetchInto(url: string, draft: string, { checksum, access }: Fetching): Promise<void> {
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(), idleTimeoutMs);
  const hash = hashFor(checksum);
  try {
    const response = await fetch(url, { signal: idle.signal, headers: access?.headers ?? {} });
    if (!response.ok || response.body === null) {
      const refused = [401, 403, 404].includes(response.status) && access !== null;
      const remedy = refused ? `; ${access.remedy(response.status)}` : '';
      throw unavailable(url, `HTTP status ${response.status}${remedy}`);
    }
    let received = 0;
    const observe = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        timer.refresh();
        hash.update(chunk);
        received += chunk.length;
        done(null, chunk);
      },
    });
    await pipeline(response.body, observe, createWriteStream(draft));
    const announced = response.headers.get('content-encoding') === null ? response.headers.get('content-length') : null;
    if (announced !== null && Number(announced) !== received) {
      throw unavailable(url, `${received} of ${announced} bytes`);
    }
  } catch (error) {
    if (error instanceof TemperFailure) throw error;
    throw unavailable(url, idle.signal.aborted ? `no data for ${idleTimeoutMs} ms` : reasonOf(error), error);
  } finally {
    clearTimeout(timer);
  }
  const got = hash.digest('hex');
  if (checksum !== null && got !== checksum.digest) {
    throw unavailable(url, `${checksum.kind} ${got} instead of ${checksum.digest}`);
  }
}

function hashFor(checksum: Checksum | null) {
  if (checksum?.kind !== 'git-blob') return createHash('sha256');
  return createHash('sha1').update(`blob ${checksum.size}\0`);
}

/** The reason for a failed fetch, which Node puts into the error's cause. */
const reasonOf = (error: unknown): string =>
  errorMessage(error instanceof Error && error.cause instanceof Error ? error.cause : error);

const unavailable = (url: string, got: string, cause?: unknown): TemperFailure =>
  new TemperFailure('UnknownTask', `${url}: expected ${basename(new URL(url).pathname)}, got ${got}`, { cause });
