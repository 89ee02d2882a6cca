import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { live, note } from '../text/output.ts';
import { workflowEnd } from './workflow-failure.ts';

/** Where a workflow is, as a line that is written anew, and why it is paused. */
export interface Look {
  readonly line: string;
  readonly pausedBecause: string | null;
}

const pollMs = 500;

/** Shows where a workflow is until it ends. Throws when it ends otherwise than by its result or a cancel. */
export async function followUntilEnded(handle: WorkflowHandle, look: () => Promise<Look>): Promise<void> {
  const { workflowId: id } = handle;
  const end = handle.result().then(
    () => ({ error: null }),
    (error: unknown) => ({ error }),
  );
  let reason: string | null = null;
  for (;;) {
    const ended = await Promise.race([end, sleep(pollMs, null)]);
    if (ended !== null) {
      live('');
      const why = ended.error === null ? null : workflowEnd(ended.error);
      if (ended.error !== null && why === null) throw ended.error;
      if (why !== null && why.kind !== 'cancelled') throw new Error(`${id} ended as ${why.kind}: ${why.message}`);
      return;
    }
    // A query fails while no control worker is up; the workflow goes on meanwhile, and so does this loop.
    const seen = await look().catch(() => null);
    if (seen === null) continue;
    live(seen.line);
    if (seen.pausedBecause !== null && seen.pausedBecause !== reason) {
      note(`paused: ${seen.pausedBecause}; go on with \`temper resume ${id}\``);
    }
    reason = seen.pausedBecause;
  }
}
