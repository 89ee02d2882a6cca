import { Duplex } from 'node:stream';
import type { EnvdProcess } from './envd.ts';

/** Creates the stream of a process's stdin and stdout. It reads nothing ahead of its reader. */
export function createProcessStream(process: EnvdProcess): Duplex {
  let wake: (() => void) | undefined;
  const write = (bytes: Buffer, done: (error?: Error) => void): void => {
    process.write(bytes).then(
      () => done(),
      (error: Error) => done(error),
    );
  };
  const stream = new Duplex({
    read: () => wake?.(),
    write: (chunk: Buffer, _encoding, done) => write(chunk, done),
    writev: (chunks, done) => write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done),
    // A process that has ended needs no end of its input.
    final: (done) =>
      void process.endInput().then(
        () => done(),
        () => done(),
      ),
    destroy: (error, done) => {
      wake?.();
      void process
        .endInput()
        .catch(() => undefined)
        .finally(() => process.release());
      done(error);
    },
  });
  const read = async (): Promise<void> => {
    for await (const { data, end } of process.events) {
      if (end !== undefined) {
        // The process reads no more.
        stream.end();
        stream.push(null);
        return;
      }
      if (data?.stdout === undefined || stream.destroyed || stream.push(data.stdout)) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      wake = undefined;
    }
  };
  read().catch((error: Error) => stream.destroy(error));
  return stream;
}
