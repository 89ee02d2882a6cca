import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fetch } from 'undici';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { withLock } from '../../process/lock.mjs';

/** What a file has to hash to, as its publisher says. */
export type Checksum =
  | { readonly kind: 'sha256'; readonly digest: string }
  /** Of git, for files that a hub keeps in it: over a header with the size, and the file. */
  | { readonly kind: 'git-blob'; readonly digest: string; readonly size: number };

/** How long a server may be silent. */
const silenceMs = 60_000;

/**
 * Brings a file to its place in the cache, once per host: checked under a temporary name and renamed, so that nobody ever sees
 * half of it, and behind a lock, so that processes wait for each other. Throws TemperFailure UnknownTask.
 */
export async function download(url: string, target: string, checksum: Checksum | null): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  await withLock(`${target}.lock`, async () => {
    if (await isThere(target)) return;
    const draft = `${target}.${process.pid}.part`;
    try {
      await fetchInto(url, draft, checksum);
      await rename(draft, target);
    } finally {
      await rm(draft, { force: true });
    }
  });
}

export const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

async function fetchInto(url: string, draft: string, checksum: Checksum | null): Promise<void> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  const hash = hashFor(checksum);
  try {
    const response = await fetch(url, { signal: silence.signal });
    if (!response.ok || response.body === null) throw unavailable(url, `HTTP status ${response.status}`);
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
    throw unavailable(url, silence.signal.aborted ? `nothing for ${silenceMs} ms` : reasonOf(error), error);
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

/** Node's fetch says what went wrong in the cause alone. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

const unavailable = (url: string, got: string, cause?: unknown): TemperFailure =>
  new TemperFailure('UnknownTask', `${url}: expected ${basename(new URL(url).pathname)}, got ${got}`, { cause });
