import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { writeTemporary } from '../../store/files.ts';

/** Throws TemperFailure InvalidInput unless this host can write its journals on the volume that all hosts share. */
export async function requireSharedJournals(shared: string | null, own: string): Promise<void> {
  if (shared === null) return;
  try {
    await rm(await writeTemporary(join(own, '.writable'), ''));
  } catch (error) {
    throw new TemperFailure(
      'InvalidInput',
      `TEMPER_JOURNALS: expected a directory in which this user may write, got ${shared}: ${errorMessage(error)}; ` +
        'mount the volume that all hosts share, or unset the variable',
      { cause: error },
    );
  }
}
