import type { SampleEvent } from '../sampler-core.ts';
import type { EventsMessage, TicketEvent } from './messages.ts';

/** The longest delay of a token by batching. */
const flushMs = 4;

/** Collects the events of several decode steps into one message, since a message costs more than a token. */
export interface EventBatcher {
  add(ticket: number, event: SampleEvent): void;
  flush(): void;
  flushIfDue(): void;
}

interface Batch {
  version: string;
  readonly before: TicketEvent[];
  readonly tickets: number[];
  readonly tokenIds: number[];
  readonly logprobs: number[];
  readonly after: TicketEvent[];
}

export function createEventBatcher(send: (message: EventsMessage) => void): EventBatcher {
  let batch = emptyBatch();
  let flushedAtMs = 0;
  function flush(): void {
    flushedAtMs = performance.now();
    const { before, tickets, after } = batch;
    if (before.length + tickets.length + after.length === 0) return;
    send({ kind: 'events', ...batch });
    batch = emptyBatch();
  }
  return {
    flush,
    flushIfDue() {
      const isDue = batch.after.length > 0 || performance.now() - flushedAtMs >= flushMs;
      if (isDue) flush();
    },
    add(ticket, event) {
      if (event.type === 'prompt') batch.before.push({ ticket, event });
      else if (event.type === 'finish') batch.after.push({ ticket, event });
      else {
        if (batch.tickets.length > 0 && batch.version !== event.version) flush();
        batch.version = event.version;
        batch.tickets.push(ticket);
        batch.tokenIds.push(event.tokenId);
        batch.logprobs.push(event.logprob);
      }
    },
  };
}

function emptyBatch(): Batch {
  return { version: '', before: [], tickets: [], tokenIds: [], logprobs: [], after: [] };
}
