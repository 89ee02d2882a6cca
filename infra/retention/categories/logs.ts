import {
  closeSync,
  createReadStream,
  createWriteStream,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip, gzipSync } from 'node:zlib';
import type { Category, Entry } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { sizeOf, treeEntry } from '../trees.ts';

const limitBytes = 64 * 2 ** 20;
const keptOld = 3;

/** The logs of a stack's processes. Each process appends to its file, which is copied and then cut. */
export const logs: Category = {
  name: 'logs',
  keeps: 'the log of each process up to 64 MB, and the three before it, compressed (`<part>.log.1.gz` is the newest)',
  where: ({ paths }) => [paths.logs],
  async *entries({ paths }) {
    for (const { name, path, isDirectory } of await listDirectory(paths.logs)) {
      if (isDirectory) continue;
      const number = Number(/\.log\.(\d+)\.gz$/.exec(name)?.[1] ?? 0);
      if (name.endsWith('.log')) yield* live(name, path);
      else if (number > keptOld || name.endsWith('.part')) yield treeEntry(path, 'older than the three kept logs');
      else yield treeEntry(path, null);
    }
  },
};

async function* live(name: string, path: string): AsyncIterable<Entry> {
  const { size } = await stat(path);
  const expired = size > limitBytes ? 'larger than 64 MB: its content is compressed' : null;
  yield { name, path, bytes: size, expired, remove: () => rotate(path) };
}

/** Compresses a log's content into a file of its own and cuts the log. Returns the bytes that are free afterwards. */
async function rotate(path: string): Promise<number> {
  const before = await stat(path);
  const oldest = await sizeOf(old(path, keptOld));
  const part = `${path}.part`;
  await pipeline(createReadStream(path, { end: before.size - 1 }), createGzip(), createWriteStream(part));
  await rm(old(path, keptOld), { force: true });
  for (let number = keptOld - 1; number > 0; number -= 1) {
    await rename(old(path, number), old(path, number + 1)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
  await rename(part, old(path, 1));
  moveRest(path, old(path, 1), before.size);
  return Math.max(1, before.size + oldest - (await sizeOf(old(path, 1))));
}

const old = (path: string, number: number): string => `${path}.${number}.gz`;

/**
 * Appends what was written since `position` to the compressed log, and empties the log. The writer has the log open for
 * appending, so that its next line follows. Reads until nothing more comes and cuts at once: the system has no call that does
 * both, so that a line written within these microseconds is lost.
 */
function moveRest(path: string, compressed: string, position: number): void {
  const file = openSync(path, 'r+');
  const target = openSync(compressed, 'a');
  try {
    for (let end = position; fstatSync(file).size > end; ) {
      const part = Buffer.alloc(2 ** 20);
      const length = readSync(file, part, 0, part.length, end);
      writeSync(target, gzipSync(part.subarray(0, length)));
      end += length;
    }
    ftruncateSync(file, 0);
  } finally {
    closeSync(file);
    closeSync(target);
  }
}
