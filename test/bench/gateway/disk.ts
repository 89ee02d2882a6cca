import { closeSync, constants, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A text as long as a short turn's record in a journal. */
const record = Buffer.from(`${'x'.repeat(1_000)}\n`);
const writes = 200;

/**
 * Measures the disk alone: the median time of appending a record to a file of this directory with write-through, as the
 * gateway's journals do before a reply ends.
 */
export function measureFsyncMs(dir: string): number {
  const path = join(dir, 'fsync');
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC, 0o600);
  try {
    const times = Array.from({ length: writes }, (_, index) => {
      const startedAt = performance.now();
      writeSync(file, record, 0, record.length, index * record.length);
      return performance.now() - startedAt;
    });
    return times.sort((a, b) => a - b)[writes / 2] ?? Number.NaN;
  } finally {
    closeSync(file);
    rmSync(path);
  }
}
