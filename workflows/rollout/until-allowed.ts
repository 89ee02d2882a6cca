import { isCancellation, log } from '@temporalio/workflow';
import { creation } from '../activities.ts';

/** Waits until the server allows the creation of another sandbox. Without an answer it is created all the same. */
export async function untilAllowed(): Promise<void> {
  await creation.allowCreation().catch((error) => {
    if (isCancellation(error)) throw error;
    log.warn('no host limits the creation of sandboxes any more', { error: String(error) });
  });
}
