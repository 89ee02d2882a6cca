import { createReadStream } from 'node:fs';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Row, type RowFile, rowFailure } from './row.ts';

/** The length up to which a line is read. The longest rows hold all test names of a repository and stay far below it. */
const maxLineBytes = 64 * 1024 * 1024;

/** Opens a JSON Lines file. One line is in memory at a time, positions are byte offsets, and empty lines are skipped. */
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
  let partsLength = 0;
  let position = start;
  const take = (last: Buffer): { readonly position: number; readonly text: string } => {
    const line = { position, text: (parts.length === 0 ? last : Buffer.concat([...parts, last])).toString('utf8') };
    position += partsLength + last.length + 1;
    parts = [];
    partsLength = 0;
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
    partsLength += chunk.length - from;
    if (partsLength > maxLineBytes) {
      throw new TemperFailure(
        'MalformedTask',
        `${file}: expected lines of at most ${maxLineBytes} bytes, got a longer one at byte ${position}`,
      );
    }
  }
  const rest = take(Buffer.alloc(0));
  if (rest.text.trim() !== '') yield rest;
}
