import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, normalize, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { archivePath, type CheckpointAddress } from './checkpoints.ts';
import { failureOf, refused, type TrainerConnection, unavailable } from './connection.ts';

/** The directory of the trainer's checkpoints, as this process and as the engine see it. */
export interface CheckpointDirectories {
  readonly local: string;
  readonly engine: string;
}

/**
 * Makes sampler weights loadable and returns the path at which the engine sees them. A directory is ready as it is; the files
 * of an archive (SkyRL's tar.gz, or a download) are unpacked beside it, all or none.
 */
export async function loadableWeights(
  connection: TrainerConnection,
  address: CheckpointAddress,
  directories: CheckpointDirectories,
  signal?: AbortSignal,
): Promise<string> {
  const saved = join(address.modelId, 'sampler_weights', address.name);
  if (await isDirectory(join(directories.local, saved))) return join(directories.engine, saved);
  const unpacked = join('unpacked', `${address.modelId}-${address.name}`);
  const target = join(directories.local, unpacked);
  if (!(await isDirectory(target))) {
    const archive = join(directories.local, `${saved}.tar.gz`);
    const bytes = (await isFile(archive)) ? createReadStream(archive) : await download(connection, address, signal);
    await unpackInto(bytes, target);
  }
  return join(directories.engine, unpacked);
}

/** Unpacks under a temporary name, then renames, so that a directory that exists is complete. */
export async function unpackInto(archive: Readable, target: string): Promise<void> {
  const temporary = `${target}.${randomUUID()}`;
  await mkdir(temporary, { recursive: true });
  try {
    const entries = extract();
    const pumped = pipeline(archive, createGunzip(), entries);
    const written = writeEntries(entries, temporary);
    await Promise.all([pumped, written]);
    await rename(temporary, target).catch(async (error: NodeJS.ErrnoException) => {
      // Another process has unpacked the same content first.
      if (!(await isDirectory(target))) throw error;
    });
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'TemperFailure') throw cause;
    throw refused(`weights archive: expected a tar.gz, got ${errorMessage(cause)}`, { cause });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function writeEntries(entries: ReturnType<typeof extract>, directory: string): Promise<void> {
  for await (const entry of entries) {
    const path = memberPath(entry.header);
    if (path === null) {
      entry.resume();
      continue;
    }
    const file = join(directory, path);
    await mkdir(dirname(file), { recursive: true });
    await pipeline(entry, createWriteStream(file, { flags: 'wx', mode: 0o644, flush: true }));
  }
}

/**
 * Returns a member's path below the target, or null for a directory. SkyRL's members begin with a slash. Refuses links and
 * paths that leave the target.
 */
function memberPath({ name, type }: Header): string | null {
  if (type === 'directory') return null;
  const path = normalize(name.replace(/^\/+/, ''));
  const leaves = path === '..' || path.startsWith(`..${sep}`) || path === '.' || path.startsWith(sep);
  if (type !== 'file' || leaves) throw refused(`weights archive: expected plain files below it, got ${type} "${name}"`);
  return path;
}

async function download(
  connection: TrainerConnection,
  address: CheckpointAddress,
  signal?: AbortSignal,
): Promise<Readable> {
  const path = archivePath(address);
  const pointed = await connection.get(path, signal);
  if (pointed.status === 200) return Readable.from([pointed.bytes]);
  if (pointed.location === null) throw failureOf(pointed, path);
  const reply = await connection.follow(pointed.location, signal);
  // What follows may be a signature.
  const [named] = pointed.location.split('?');
  if (reply.status !== 200) throw unavailable(`weights archive ${named}: expected 200, got ${reply.status}`);
  return Readable.from([reply.bytes]);
}

async function isDirectory(path: string): Promise<boolean> {
  return (await statOrNull(path))?.isDirectory() ?? false;
}

async function isFile(path: string): Promise<boolean> {
  return (await statOrNull(path))?.isFile() ?? false;
}

async function statOrNull(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
}
