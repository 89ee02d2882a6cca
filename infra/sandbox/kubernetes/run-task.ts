import type { Connection, Task, TaskOutput } from './connection.ts';
import type { TaskEnd, TaskRequest } from './keeper/frames.ts';
import { KeeperFailure } from './keeper-failure.ts';

/** Starts a task whose output is taken as it arrives. */
export function startTask(connection: Connection, request: TaskRequest, { onStdout, onStderr }: TaskOutput): Task {
  const task = connection.start(request, {
    onStdout: (chunk) => {
      onStdout(chunk);
      task.take('stdout', chunk.length);
    },
    onStderr: (chunk) => {
      onStderr(chunk);
      task.take('stderr', chunk.length);
    },
  });
  return task;
}

/** Sends a task its whole input. A task that ends before it has read all is no failure. */
export function feed(task: Task, stdin: Uint8Array): void {
  void task.write(Buffer.from(stdin)).then(() => task.endInput());
}

export interface TaskLimits {
  readonly signal: AbortSignal;
  /** The time that the task may take. Default: any. */
  readonly limitMs?: number;
}

/** Waits for the end of a task. An abort stops listening and leaves the task running. */
export async function endOf(task: Task, { signal, limitMs }: TaskLimits): Promise<TaskEnd> {
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => {
    task.release();
    stopped.reject(signal.reason);
  };
  const late = () => stopped.reject(new KeeperFailure(`a command of temper's own did not end within ${limitMs} ms`));
  const timer = limitMs === undefined ? undefined : setTimeout(late, limitMs);
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([task.ended, stopped.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
