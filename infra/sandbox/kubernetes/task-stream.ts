import { Duplex } from 'node:stream';
import type { Task, TaskOutput } from './connection.ts';

/**
 * Creates the stream of a task's stdin and stdout. It stops taking output while its reader is behind. `explained` turns what
 * broke the connection into the error of the stream.
 */
export function createTaskStream(
  start: (output: TaskOutput) => Task,
  explained: (ended: Task['ended']) => Promise<unknown>,
): Duplex {
  let owed = 0;
  const task = start({
    onStdout: (chunk) => {
      if (stream.push(chunk)) task.take('stdout', chunk.length);
      else owed += chunk.length;
    },
    onStderr: (chunk) => task.take('stderr', chunk.length),
  });
  const stream = new Duplex({
    read: () => {
      if (owed > 0) task.take('stdout', owed);
      owed = 0;
    },
    write: (chunk: Buffer, _encoding, done) => void task.write(chunk).then(() => done(), done),
    final: (done) => {
      task.endInput();
      done();
    },
    destroy: (error, done) => {
      task.endInput();
      task.release();
      done(error);
    },
  });
  explained(task.ended).then(
    () => {
      // The command has ended and reads no more.
      stream.end();
      stream.push(null);
    },
    (error: Error) => stream.destroy(error),
  );
  return stream;
}
