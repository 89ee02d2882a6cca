import { readFile, stat } from 'node:fs/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Row, type RowFile, rowFailure } from './row.ts';

/** JSON can't be read in part: what is larger belongs into JSON Lines or Parquet. */
const maxBytes = 256 * 1024 * 1024;

/** A JSON list of rows, or an object whose values are rows. A row's position is its index. Read as a whole each time. */
export function openJson(file: string): RowFile {
  const rowOf = (value: unknown, index: number): Row => ({
    file,
    number: index + 1,
    position: index,
    read: () => value,
  });
  return {
    async *rows() {
      yield* (await readRows(file)).map(rowOf);
    },
    async at({ number, position }) {
      const values = await readRows(file);
      if (position < values.length) return rowOf(values[position], position);
      throw rowFailure('MalformedTask', { file, number }, `expected a row, got a list of ${values.length}`);
    },
  };
}

async function readRows(file: string): Promise<readonly unknown[]> {
  const { size } = await stat(file);
  if (size > maxBytes) {
    throw new TemperFailure(
      'MalformedTask',
      `${file}: expected at most ${maxBytes} bytes of JSON, got ${size}; write it as JSON Lines (.jsonl)`,
    );
  }
  const value = parse(file, await readFile(file, 'utf8'));
  if (Array.isArray(value)) return value;
  if (typeof value === 'object' && value !== null) return Object.values(value);
  throw new TemperFailure('MalformedTask', `${file}: expected a list of rows, got ${JSON.stringify(value)}`);
}

function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TemperFailure('MalformedTask', `${file}: expected JSON, got: ${reason.slice(0, 200)}`, { cause });
  }
}
