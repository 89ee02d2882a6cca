import { isCancellation } from '@temporalio/workflow';
import { rootMessage } from '../run/root-message.ts';
import type { UnsavedRows } from './unsaved-rows.ts';

/** Rows of a record, in bytes: one value of history. */
const recordBytes = 6_000;
/** So many rows are recorded together while work is in flight. */
export const recordRows = 8;

/** Records rows for as long as there are `atLeast` so many. Says why it could not, null when it could: they are kept then. */
export async function recordWhole<Row>(
  unsaved: UnsavedRows<Row>,
  atLeast: number,
  write: (chunk: number, rows: readonly Row[]) => Promise<void>,
): Promise<string | null> {
  while (unsaved.count >= atLeast) {
    const rows = unsaved.first(recordBytes);
    try {
      await write(unsaved.chunks, rows);
    } catch (error) {
      if (isCancellation(error)) throw error;
      return `results could not be recorded: ${rootMessage(error)}; mend the cause, then resume`;
    }
    unsaved.saved(rows.length);
  }
  return null;
}
