import type { SampleEvent } from '../core.ts';

/** Events pushed from one side, iterated on the other; ends after a `finish` or with an error. */

export interface EventQueue {
  push(event: SampleEvent): void;
  fail(error: Error): void;
  events(): AsyncGenerator<SampleEvent, void, undefined>;
}

export function createEventQueue(): EventQueue {
  const queued: SampleEvent[] = [];
  let failure: Error | undefined;
  let wake = (): void => {};
  return {
    push(event) {
      queued.push(event);
      wake();
    },
    fail(error) {
      failure ??= error;
      wake();
    },
    async *events() {
      for (let next = 0; ; ) {
        const event = queued[next];
        if (event !== undefined) {
          next += 1;
          yield event;
          if (event.type === 'finish') return;
        } else if (failure !== undefined) throw failure;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}
