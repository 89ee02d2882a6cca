import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { live, note } from '../text/output.ts';
import { workflowEnd } from './workflow-end.ts';

/** The progress of a workflow, for display. */
export interface FollowedProgress {
  /** One line, which replaces the previous one on a terminal. */
  readonly line: string;
  readonly pausedBecause: string | null;
}

const pollMs = 500;

/** Shows a workflow's progress until it ends. Throws if it ends without a result, unless it was cancelled. */
export async function followUntilEnded(
  handle: WorkflowHandle,
  progress: () => Promise<FollowedProgress>,
): Promise<void> {
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
    // A query fails while no control worker is up. The workflow continues meanwhile, and so does this loop.
    const seen = await progress().catch(() => null);
    if (seen === null) continue;
    live(seen.line);
    if (seen.pausedBecause !== null && seen.pausedBecause !== reason) {
      note(`paused: ${seen.pausedBecause} (\`temper resume ${id}\`)`);
    }
    reason = seen.pausedBecause;
  }
}
