import type { Readable } from 'node:stream';
import { extract, type Header, type Pack, pack } from 'tar-stream';
import { FileRefused } from './failure.ts';
import type { FileEntry, FileTree } from './file-tree.ts';

export type { FileEntry, FileTree };

export interface UnpackLimits {
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/** The owner of a packed tree; a tar always names one. */
export interface TarOwner {
  readonly uid: number;
  readonly gid: number;
}

/** The part of a readable stream that Node's and tar-stream's have in common. */
export interface ByteSource {
  on(event: 'data', listener: (chunk: unknown) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
}

const plainTypes = new Set<Header['type']>(['directory', 'file', 'contiguous-file']);

/** Splits a path into its segments. Throws `FileRefused` unless it is relative and stays in its tree. */
export function relativeSegments(path: string): readonly string[] {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (path.startsWith('/') || path.includes('\0') || segments.includes('..') || segments.length === 0) {
    const text = `expected a relative path that stays in its tree, got ${JSON.stringify(path)}`;
    throw new FileRefused('outside', path, text);
  }
  return segments;
}

/** Packs a tree into a tar, with the directories that its files need. */
export async function packTree(tree: FileTree, owner: TarOwner): Promise<Buffer> {
  const tar = pack();
  const packed = collect(tar);
  addTree(tar, tree, { at: '', ...owner });
  tar.finalize();
  return packed;
}

/** Adds a tree to a tar below the directory `at`, with the directories that its files need. */
export function addTree(tar: Pack, tree: FileTree, { at, ...owner }: TarOwner & { readonly at: string }): void {
  const made = new Set<string>();
  const above = at.split('/').filter((segment) => segment !== '');
  for (const [path, entry] of tree) {
    const segments = [...above, ...relativeSegments(path)];
    for (let depth = above.length + 1; depth < segments.length; depth++) {
      const directory = segments.slice(0, depth).join('/');
      if (made.has(directory)) continue;
      made.add(directory);
      tar.entry({ name: `${directory}/`, type: 'directory', mode: 0o755, ...owner });
    }
    tar.entry({ name: segments.join('/'), mode: entry.mode & 0o7777, ...owner }, Buffer.from(entry.bytes));
  }
}

/** Reads an untrusted tar. Throws `FileRefused` for a link or a device in it, instead of skipping it. */
export function unpackTree(source: Readable, limits: UnpackLimits): Promise<FileTree> {
  const tree = new Map<string, FileEntry>();
  let bytesSoFar = 0;
  const admit = ({ name, type, size }: Header): void => {
    if (!plainTypes.has(type)) {
      throw new FileRefused('not-a-file', name, `expected files and directories in the tar, got a ${type}: ${name}`);
    }
    if (type !== 'directory') relativeSegments(name);
    bytesSoFar += size;
    if (bytesSoFar > limits.maxBytes || tree.size >= limits.maxFiles) {
      const most = `${limits.maxFiles} files and ${limits.maxBytes} bytes`;
      throw new FileRefused('too-large', name, `expected a tree of at most ${most}, got more at ${name}`);
    }
  };
  const reader = extract();
  reader.on('entry', (header, entry, next) => {
    const read = async (): Promise<void> => {
      const reading = collect(entry);
      admit(header);
      const bytes = await reading;
      if (header.type === 'directory') return;
      tree.set(relativeSegments(header.name).join('/'), { mode: header.mode & 0o777, bytes });
    };
    read().then(() => next(), next);
  });
  return new Promise((resolve, reject) => {
    reader.on('finish', () => resolve(tree));
    reader.on('error', (error: Error) => {
      source.destroy();
      reject(error);
    });
    reader.on('drain', () => source.resume());
    source.on('error', (error) => reader.destroy(error));
    source.on('end', () => reader.end(null));
    source.on('data', (chunk: Buffer) => {
      if (!reader.write(chunk)) source.pause();
    });
  });
}

/** Reads a stream to its end. */
export function collect(source: ByteSource): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const collecting = new Promise<Buffer>((resolve, reject) => {
    source.on('data', (chunk) => {
      if (chunk instanceof Uint8Array) chunks.push(chunk);
    });
    source.on('end', () => resolve(Buffer.concat(chunks)));
    source.on('error', reject);
  });
  // A caller that gives up destroys the entry. The reader then receives the reason, so this rejection counts as handled.
  collecting.catch(() => undefined);
  return collecting;
}
