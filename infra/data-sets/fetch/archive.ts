import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { withLock } from '../../process/lock.mjs';
import { relativeSegments } from '../../sandbox/files.ts';
import { sha256 } from '../../store/files.ts';
import { isThere } from './download.ts';

/**
 * Unpacks a `.tar.gz` once per host, one entry after the other, and says where it is. Names that lead out of it, links and
 * devices are refused: nobody vouches for an archive. Throws TemperFailure MalformedTask.
 */
export async function unpackArchive(archive: string, directory: string): Promise<string> {
  const { size, mtimeMs } = await stat(archive);
  const target = join(directory, sha256([archive, size, mtimeMs].join('\n')).slice(0, 24));
  await mkdir(directory, { recursive: true });
  await withLock(`${target}.lock`, async () => {
    if (await isThere(target)) return;
    const draft = await mkdtemp(`${target}.`);
    try {
      await unpackInto(archive, draft);
      await rename(draft, target);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });
  return target;
}

async function unpackInto(archive: string, draft: string): Promise<void> {
  const reader = extract();
  const reading = pipeline(createReadStream(archive), createGunzip(), reader);
  // Awaited below; a reader that fails first must not leave this one unhandled.
  reading.catch(() => undefined);
  try {
    for await (const entry of reader) {
      const { name, type, mode } = entry.header;
      if (type === 'directory') {
        entry.resume();
        continue;
      }
      if (type !== 'file') throw new Error(`expected files and directories alone, got a ${type}: ${name}`);
      const path = join(draft, ...relativeSegments(name));
      await mkdir(dirname(path), { recursive: true });
      await pipeline(entry, createWriteStream(path));
      if (((mode ?? 0) & 0o111) !== 0) await chmod(path, 0o755);
    }
    await reading;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TemperFailure('MalformedTask', `${archive}: expected a tar.gz of task directories, got: ${reason}`, {
      cause,
    });
  }
}
