import { setTimeout as sleep } from 'node:timers/promises';

const againMs = 2_000;

/**
 * Creates the function that writes the newest of several values, one at a time. A write that fails is made again until it succeeds
 * or a newer value takes its place; the first failure in a row is reported.
 */
export function createNewestWriter<Value>(
  write: (value: Value) => Promise<void>,
  onFailure: (error: unknown) => void,
): (value: Value) => void {
  let waiting: { readonly value: Value } | null = null;
  let isWriting = false;

  async function writeAll(): Promise<void> {
    let isFailing = false;
    while (waiting !== null) {
      const next: { readonly value: Value } = waiting;
      try {
        await write(next.value);
        if (waiting === next) waiting = null;
        isFailing = false;
      } catch (error) {
        if (!isFailing) onFailure(error);
        isFailing = true;
        await sleep(againMs, undefined, { ref: false });
      }
    }
    isWriting = false;
  }

  return (value) => {
    waiting = { value };
    if (isWriting) return;
    isWriting = true;
    void writeAll();
  };
}
