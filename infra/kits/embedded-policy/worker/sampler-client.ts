import type { LoadWeightsResult, SampleEvent, SampleRequest, SamplerCore, SamplerStatus } from '../sampler-core.ts';
import type { EventsMessage } from './messages.ts';
import type { Thread } from './thread.ts';

export interface EventRouter {
  readonly route: (message: EventsMessage) => void;
  readonly streams: Map<number, EventQueue>;
}

/**
 * Creates the router of events to streams. A stream has a ticket rather than the request id: a refused duplicate must not
 * disturb the first.
 */
export function createEventRouter(): EventRouter {
  const streams = new Map<number, EventQueue>();
  return {
    streams,
    route({ before, version, tickets, tokenIds, logprobs, after }) {
      for (const { ticket, event } of before) streams.get(ticket)?.push(event);
      for (const [i, ticket] of tickets.entries()) {
        const token = { tokenId: tokenIds[i] as number, logprob: logprobs[i] as number };
        streams.get(ticket)?.push({ type: 'token', ...token, version });
      }
      for (const { ticket, event } of after) streams.get(ticket)?.push(event);
    },
  };
}

/** Creates the sampler as the main thread sees it: unpacks the events of its thread into one stream per request. */
export function createSamplerClient(thread: Thread, { streams }: EventRouter): SamplerCore {
  const { call } = thread;
  let nextTicket = 0;
  void thread.crashed.then((error) => {
    for (const queue of streams.values()) queue.fail(error);
  });

  async function* generate(request: SampleRequest, signal?: AbortSignal): AsyncGenerator<SampleEvent, void, undefined> {
    const ticket = nextTicket++;
    const queue = createEventQueue();
    streams.set(ticket, queue);
    const fail = (error: unknown): void => queue.fail(error instanceof Error ? error : new Error(String(error)));
    const abandon = (): void => void call('abort', [request.requestId]).catch(fail);
    let finished = false;
    try {
      await call('submit', ticket, request);
      signal?.addEventListener('abort', abandon, { once: true });
      if (signal?.aborted) abandon();
      for await (const event of queue.events()) {
        finished = event.type === 'finish';
        yield event;
      }
    } catch (error) {
      finished = true; // refused, or the thread has ended: nothing runs
      throw error;
    } finally {
      signal?.removeEventListener('abort', abandon);
      streams.delete(ticket);
      if (!finished) abandon();
    }
  }

  // sampler-thread.ts replies with the results of Sampler's methods of the same names.
  return {
    generate,
    pause: async (mode) => (await call('pause', mode)) as SamplerStatus,
    resume: async () => (await call('resume')) as SamplerStatus,
    loadWeights: async (path, version, options) =>
      (await call('loadWeights', path, version, options)) as LoadWeightsResult,
    setVersion: async (version) => (await call('setVersion', version)) as SamplerStatus,
    abort: async (requestIds) => (await call('abort', requestIds)) as number,
    status: async () => (await call('status')) as SamplerStatus,
  };
}

/** Events pushed by the thread and iterated by a caller; ends after a `finish` or with an error. */
interface EventQueue {
  push(event: SampleEvent): void;
  fail(error: Error): void;
  events(): AsyncGenerator<SampleEvent, void, undefined>;
}

function createEventQueue(): EventQueue {
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
