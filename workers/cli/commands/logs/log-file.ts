import { type FileHandle, open, stat } from 'node:fs/promises';

const chunkBytes = 64 * 1024;

/** A log that grows, and that may be cut to its beginning or replaced by another file while it is read. */
export interface LogFile {
  /** Skips what is written so far, except for the last lines. */
  keepLast(lines: number): Promise<void>;
  /** Returns the complete lines that were written since the last call. */
  readLines(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export function createLogFile(path: string): LogFile {
  let file: FileHandle | null = null;
  let offset = 0;
  let rest = '';

  async function readToEnd(take: (text: string) => void): Promise<void> {
    if (file === null) return;
    const buffer = Buffer.alloc(chunkBytes);
    const decoder = new TextDecoder();
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, chunkBytes, offset);
      // A character that is written in two parts is read again when it is whole.
      const whole = bytesRead - incompleteBytes(buffer, bytesRead);
      if (whole === 0) return;
      offset += whole;
      take(decoder.decode(buffer.subarray(0, whole)));
    }
  }

  async function readNew(): Promise<readonly string[]> {
    const lines: string[] = [];
    await readToEnd((text) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    });
    return lines;
  }

  async function reopen(): Promise<void> {
    await file?.close();
    offset = 0;
    rest = '';
    file = await open(path, 'r').catch(nullIfMissing);
  }

  return {
    async keepLast(lines) {
      await reopen();
      if (file === null) return;
      offset = await startOfLast(file, lines);
    },
    async readLines() {
      const named = await stat(path).catch(nullIfMissing);
      if (named === null) return readNew();
      const opened = await file?.stat();
      if (opened?.ino === named.ino && opened.dev === named.dev) {
        if (named.size < offset) {
          offset = 0;
          rest = '';
        }
        return readNew();
      }
      const last = await readNew();
      await reopen();
      return [...last, ...(await readNew())];
    },
    async close() {
      await file?.close();
    },
  };
}

/** Returns the offset at which the last lines of a file begin. Reads from the end, since a log may be large. */
async function startOfLast(file: FileHandle, lines: number): Promise<number> {
  const newline = '\n'.charCodeAt(0);
  const buffer = Buffer.alloc(chunkBytes);
  const { size } = await file.stat();
  // The newline that ends the last line begins no other line.
  let found = -1;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunkBytes);
    const { bytesRead } = await file.read(buffer, 0, end - start, start);
    for (let at = bytesRead - 1; at >= 0; at -= 1) {
      if (buffer[at] === newline) found += 1;
      if (found === lines) return start + at + 1;
    }
    end = start;
  }
  return lines === 0 ? size : 0;
}

/** Counts the bytes of a UTF-8 character at the end of which more bytes are to follow. */
function incompleteBytes(buffer: Buffer, length: number): number {
  for (let back = 1; back <= Math.min(3, length); back += 1) {
    const byte = buffer[length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
