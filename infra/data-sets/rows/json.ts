import { readFile, stat } from 'node:fs/promises';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { isRecord } from '../../is-record.ts';
import { type Row, type RowFile, rowFailure } from './row.ts';

/** The size up to which a file is read. JSON cannot be read in part, so larger data needs JSON Lines or Parquet. */
const maxBytes = 256 * 1024 * 1024;

/** Opens a JSON list of rows, an object whose values are rows, or an object that is the only row. The file is read as a whole each time; positions are indexes. */
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
  // The fields of a row are not all objects, as rows are.
  if (isRecord(value)) return Object.values(value).every(isRecord) ? Object.values(value) : [value];
  throw new TemperFailure('MalformedTask', `${file}: expected a list of rows, got ${JSON.stringify(value)}`);
}

function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const reason = errorMessage(cause).slice(0, 200);
    throw new TemperFailure('MalformedTask', `${file}: expected JSON, got: ${reason}`, { cause });
  }
}
