import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { type JsonOption, runningConfigOf } from '../stack/command.ts';
import type { StackClient } from '../stack/stack-client.ts';
import { Interrupted } from '../text/errors.ts';
import { live, note, print, printJson } from '../text/output.ts';
import { cancelWhenAborted } from './cancel-when-aborted.ts';
import { onInterrupt } from './interrupt.ts';
import { timestampedId } from './start-workflow.ts';
import { workflowEnd } from './workflow-end.ts';

/** The progress of a workflow, for display. */
interface FollowedProgress {
  /** One line, which replaces the previous one on a terminal. */
  readonly line: string;
  readonly pausedBecause: string | null;
}

const pollMs = 500;

export interface StartOptions extends JsonOption {
  readonly id?: string;
  readonly detach?: true;
}

/** A kind of workflow that a command starts and follows until it has ended. */
export interface FollowedWorkflow<Request, Handle extends WorkflowHandleWithFirstExecutionRunId> {
  /** The word for it in messages and JSON: "sweep". */
  readonly noun: string;
  /** First part of the id when the user names none. */
  readonly prefix: string;
  /** The word for what a cancellation waits for: "rollouts". */
  readonly children: string;
  /** Clause that is true after the clean-up: "all of its rollouts have ended". */
  readonly cleanedUp: string;
  /** Returns the input, checked and with its tasks packed. Nothing starts if the signal aborts meanwhile. */
  prepare(stack: StackClient, signal: AbortSignal): Promise<Request>;
  start(stack: StackClient, id: string, request: Request): Promise<Handle>;
  progress(handle: Handle): Promise<FollowedProgress>;
  /** Prints the results, after a cancellation too. */
  report(stack: StackClient, id: string): Promise<void>;
}

/** Starts a workflow and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function startAndFollow<Request, Handle extends WorkflowHandleWithFirstExecutionRunId>(
  options: StartOptions,
  { noun, prefix, children, cleanedUp, prepare, start, progress, report }: FollowedWorkflow<Request, Handle>,
): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  let starts = false;
  const interrupt = onInterrupt(() =>
    starts ? `cancelling the ${noun}; waiting for the clean-up of its ${children}` : `ending; no ${noun} starts`,
  );
  try {
    const id = options.id ?? timestampedId(prefix);
    const request = await prepare(stack, interrupt.signal);
    interrupt.signal.throwIfAborted();
    starts = true;
    const handle = await start(stack, id, request);
    note(`started ${id}`);
    if (options.detach) {
      if (options.json) printJson({ [noun]: id, [`${noun}Key`]: handle.firstExecutionRunId });
      else print(id);
      return;
    }
    interrupt.remains(() => `${id} continues; cancel it with \`temper cancel ${id}\``);
    cancelWhenAborted(handle, interrupt.signal);
    await followUntilEnded(handle, () => progress(handle));
    await report(stack, id);
    if (interrupt.signal.aborted) throw new Interrupted(`interrupted: ${id} was cancelled, ${cleanedUp}`);
  } finally {
    interrupt.release();
    await stack.close();
  }
}

/** Shows a workflow's progress until it ends. Throws if it ends without a result, unless it was cancelled. */
async function followUntilEnded(handle: WorkflowHandle, progress: () => Promise<FollowedProgress>): Promise<void> {
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
