import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { relativeSegments } from '../../sandbox/files.ts';
import { sha256 } from '../../store/files.ts';
import { createCached } from './cache.ts';

/**
 * Unpacks a `.tar.gz` once per host, entry by entry, and returns the directory. Archives are not trusted: names that lead out
 * of the directory, links and devices are rejected. Throws TemperFailure MalformedTask.
 */
export async function unpackArchive(archive: string, directory: string): Promise<string> {
  const { size, mtimeMs } = await stat(archive);
  const target = join(directory, sha256([archive, size, mtimeMs].join('\n')).slice(0, 24));
  await createCached(target, (draft) => unpackInto(archive, draft));
  return target;
}

async function unpackInto(archive: string, draft: string): Promise<void> {
  await mkdir(draft);
  try {
    const [link] = (await unpackTar([createReadStream(archive), createGunzip()], draft)).keys();
    if (link !== undefined) throw new Error(`expected only files and directories, got a symlink: ${link}`);
  } catch (cause) {
    const text = `${archive}: expected a tar.gz of task directories, got: ${errorMessage(cause)}`;
    throw new TemperFailure('MalformedTask', text, { cause });
  }
}

/**
 * Unpacks a tar entry by entry into an empty directory. Returns the targets of its symbolic links by name, which it does not
 * make. Throws for devices, hard links, and names that lead out of the directory.
 */
export async function unpackTar(
  source: readonly [Readable, ...Transform[]],
  directory: string,
): Promise<ReadonlyMap<string, string>> {
  const reader = extract();
  const reading = pipeline([...source, reader]);
  // The pipeline is awaited below. If the loop fails first, the rejection of the pipeline must not be unhandled.
  reading.catch(() => undefined);
  const links = new Map<string, string>();
  for await (const entry of reader) {
    const { name, type, mode, linkname } = entry.header;
    if (type === 'directory' || type === 'symlink') {
      if (type === 'symlink') links.set(relativeSegments(name).join('/'), linkname ?? '');
      entry.resume();
      continue;
    }
    if (type !== 'file') throw new Error(`expected only files and directories, got a ${type}: ${name}`);
    const path = join(directory, ...relativeSegments(name));
    await mkdir(dirname(path), { recursive: true });
    await pipeline(entry, createWriteStream(path));
    if (((mode ?? 0) & 0o111) !== 0) await chmod(path, 0o755);
  }
  await reading;
  return links;
}
