import { createReadStream } from 'node:fs';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Row, type RowFile, rowFailure } from './row.ts';

/** One row holds a repository's test names at most; a longer line is no row. */
const maxLineBytes = 64 * 1024 * 1024;

/** JSON Lines: one line in memory at a time. A row's position is where its line begins. Empty lines are no rows. */
export function openJsonLines(file: string): RowFile {
  return {
    async *rows() {
      let number = 0;
      for await (const { position, text } of lines(file, 0)) {
        number += 1;
        yield rowOf(file, number, position, text);
      }
    },
    async at({ number, position }) {
      for await (const { text } of lines(file, position)) return rowOf(file, number, position, text);
      throw rowFailure('MalformedTask', { file, number }, 'expected a line, got the end of the file');
    },
  };
}

function rowOf(file: string, number: number, position: number, text: string): Row {
  return {
    file,
    number,
    position,
    read() {
      try {
        return JSON.parse(text);
      } catch {
        throw rowFailure('MalformedTask', { file, number }, `expected JSON, got ${JSON.stringify(text.slice(0, 80))}`);
      }
    },
  };
}

async function* lines(file: string, start: number) {
  let parts: Buffer[] = [];
  let held = 0;
  let position = start;
  const take = (last: Buffer): { readonly position: number; readonly text: string } => {
    const line = { position, text: (parts.length === 0 ? last : Buffer.concat([...parts, last])).toString('utf8') };
    position += held + last.length + 1;
    parts = [];
    held = 0;
    return line;
  };
  const chunks: AsyncIterable<Buffer> = createReadStream(file, { start, highWaterMark: 256 * 1024 });
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const line = take(chunk.subarray(from, end));
      from = end + 1;
      if (line.text.trim() !== '') yield line;
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    held += chunk.length - from;
    if (held > maxLineBytes) {
      throw new TemperFailure(
        'MalformedTask',
        `${file}: expected lines of at most ${maxLineBytes} bytes, got a longer one at byte ${position}`,
      );
    }
  }
  const rest = take(Buffer.alloc(0));
  if (rest.text.trim() !== '') yield rest;
}
