import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { asyncBufferFromFile, type Compressors, parquetMetadataAsync, parquetReadObjects, toJson } from 'hyparquet';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Row, type RowFile, rowFailure } from './row.ts';

/** The codecs besides Snappy, which the library itself supports. */
const compressors: Compressors = {
  GZIP: (input) => gunzipSync(input),
  ZSTD: (input) => zstdDecompressSync(input),
  BROTLI: (input) => brotliDecompressSync(input),
};

/** Opens a Parquet file. One row group is in memory at a time; positions are indexes. */
export function openParquet(file: string): RowFile {
  const rowOf = (value: unknown, position: number): Row => ({
    file,
    number: position + 1,
    position,
    read: () => toJson(value),
  });
  return {
    async *rows() {
      const { groups, read } = await open(file);
      let start = 0;
      for (const group of groups) {
        const first = start;
        start += group;
        yield* (await read(first, start)).map((value, index) => rowOf(value, first + index));
      }
    },
    async at({ number, position }) {
      const { read } = await open(file);
      const [value] = await read(position, position + 1);
      if (value === undefined) throw rowFailure('MalformedTask', { file, number }, 'expected a row, got none');
      return rowOf(value, position);
    },
  };
}

async function open(path: string) {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  return {
    groups: metadata.row_groups.map((group) => Number(group.num_rows)),
    read: (rowStart: number, rowEnd: number) =>
      parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors, useOffsetIndex: true }).catch(
        (cause: unknown) => {
          throw unreadable(path, cause);
        },
      ),
  };
}

function unreadable(path: string, cause: unknown): TemperFailure {
  return new TemperFailure('MalformedTask', `${path}: expected a Parquet file, got: ${errorMessage(cause)}`, { cause });
}
