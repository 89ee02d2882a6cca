import { isCancellation } from '@temporalio/workflow';
import { rootMessage } from '../contracts/error-message.ts';

/** The largest size of a record in bytes, which is one value of history. */
const recordBytes = 6_000;
/** The number of rows that are recorded together while work is in flight. */
export const rowsPerRecord = 8;

/** Rows that are not recorded yet, the oldest first. */
export interface UnsavedRows<Row> {
  /** The number of records written so far. */
  readonly chunks: number;
  readonly count: number;
  add(row: Row): void;
  /**
   * Writes records while there are at least `atLeast` rows. Returns null, or why a record could not be written; its rows
   * are then kept.
   */
  record(atLeast: number, write: (chunk: number, rows: readonly Row[]) => Promise<void>): Promise<string | null>;
}

export function createUnsavedRows<Row>(chunksWritten: number): UnsavedRows<Row> {
  const unsaved: Row[] = [];
  let chunks = chunksWritten;

  /** Returns the oldest rows that fit into one record, and at least one. */
  function oldest(): readonly Row[] {
    let left = recordBytes;
    const fits = unsaved.findIndex((row) => {
      left -= new TextEncoder().encode(JSON.stringify(row)).length + 1;
      return left < 0;
    });
    return unsaved.slice(0, fits < 0 ? undefined : Math.max(1, fits));
  }

  return {
    get chunks() {
      return chunks;
    },
    get count() {
      return unsaved.length;
    },
    add(row) {
      unsaved.push(row);
    },
    async record(atLeast, write) {
      while (unsaved.length >= atLeast) {
        const rows = oldest();
        try {
          await write(chunks, rows);
        } catch (error) {
          if (isCancellation(error)) throw error;
          return `results could not be recorded: ${rootMessage(error)}; fix the cause, then resume`;
        }
        unsaved.splice(0, rows.length);
        chunks += 1;
      }
      return null;
    },
  };
}
