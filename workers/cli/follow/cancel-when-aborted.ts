import type { WorkflowHandle } from '@temporalio/client';

/** Cancels a workflow when the signal aborts, until the returned function is called. */
export function cancelWhenAborted(handle: Pick<WorkflowHandle, 'cancel'>, signal: AbortSignal): () => void {
  // The workflow may have ended just now; then its result says how.
  const cancel = (): void => void handle.cancel().catch(() => undefined);
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return () => signal.removeEventListener('abort', cancel);
}
