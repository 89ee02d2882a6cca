import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { type HomeOption, runningConfigOf } from '../stack/command.ts';
import type { StackClient } from '../stack/stack-client.ts';
import { Interrupted } from '../text/errors.ts';
import { note, print, printJson } from '../text/output.ts';
import { followUntilEnded, type Look } from './follow-workflow.ts';
import { onInterrupt } from './interrupt.ts';

export interface StartOptions extends HomeOption {
  readonly id?: string;
  readonly detach?: true;
  readonly json?: true;
}

/** A workflow that a command starts and stays with until it has ended. */
export interface Followed<Handle extends WorkflowHandleWithFirstExecutionRunId> {
  /** As the command's words name it: "sweep". */
  readonly noun: string;
  /** What the id begins with when none is given. */
  readonly prefix: string;
  /** What a cancel waits for, and what is true after it. */
  readonly children: string;
  readonly cleanedUp: string;
  start(stack: StackClient, id: string): Promise<Handle>;
  look(handle: Handle): Promise<Look>;
  /** Prints what came out; also after a cancel. */
  report(stack: StackClient, id: string): Promise<void>;
}

/** Starts it and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function startAndFollow<Handle extends WorkflowHandleWithFirstExecutionRunId>(
  options: StartOptions,
  { noun, prefix, children, cleanedUp, start, look, report }: Followed<Handle>,
): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  const interrupt = onInterrupt(`cancelling the ${noun}; waiting until its ${children} have cleaned up`);
  try {
    const id = options.id ?? `${prefix}-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}`;
    const handle = await start(stack, id);
    note(`started ${id}`);
    if (options.detach) {
      if (options.json) printJson({ [noun]: id, [`${noun}Key`]: handle.firstExecutionRunId });
      else print(id);
      return;
    }
    interrupt.remains(() => `${id} goes on; end it with \`temper cancel ${id}\``);
    const cancel = (): void => void handle.cancel().catch(() => undefined); // it may have ended in this moment
    if (interrupt.signal.aborted) cancel();
    interrupt.signal.addEventListener('abort', cancel, { once: true });
    await followUntilEnded(handle, () => look(handle));
    await report(stack, id);
    if (interrupt.signal.aborted) throw new Interrupted(`interrupted: ${id} was cancelled, ${cleanedUp}`);
  } finally {
    interrupt.release();
    await stack.close();
  }
}
