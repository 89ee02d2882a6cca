import type { ModelCall, ModelReply } from './model-call.ts';

/** The end of an episode's rollout. The reward is for the client alone. */
export interface EpisodeEnd {
  /** The outcome of the rollout; null if its workflow failed and therefore has none. */
  readonly outcome: string | null;
  readonly reward: number | null;
  readonly stop: string | null;
  readonly failure: { readonly type: string; readonly message: string } | null;
}

/** The next thing that a client learns: the model call that it has to answer, or the end. */
export type Event =
  | { readonly kind: 'call'; readonly call: ModelCall; readonly restarted: boolean }
  | { readonly kind: 'end'; readonly end: EpisodeEnd };

/**
 * The exchange between an agent, which calls its model, and a client, which plays the model. It is in memory only: the
 * gateway, which journals each reply, repeats a call that was not answered.
 */
export interface Episode {
  /** Passes a model call on and waits for the client's reply. `signal` aborts when the caller has gone. */
  ask(call: ModelCall, signal: AbortSignal): Promise<ModelReply>;
  /** Waits for the first model call, or for the end of a rollout whose agent never began. */
  first(): Promise<Event>;
  /**
   * Answers the model call that the client has seen, and waits for what follows. If something happened that the client has not
   * seen, that is returned instead, and `reply` is not used.
   */
  answer(reply: ModelReply): Promise<Event>;
  /** The tools of the model call that waits for an answer. */
  tools(): ModelCall['tools'];
  /** Reports the end of the rollout, once. */
  ended(end: EpisodeEnd): void;
}

interface Waiting {
  readonly call: ModelCall;
  readonly reply: PromiseWithResolvers<ModelReply>;
  /** The requests that wait for the reply; a request that was repeated after a restart of the gateway counts as another one. */
  callers: number;
}

const stray: ModelReply = { text: 'Another request of this episode waits for its answer; this one gets none.' };
const over: ModelReply = { text: 'The episode is over.' };

export function createEpisode(): Episode {
  let epoch = 0;
  let waiting: Waiting | null = null;
  let answered: { readonly key: string; readonly epoch: number; readonly reply: ModelReply } | null = null;
  let end: EpisodeEnd | null = null;
  let tools: ModelCall['tools'] = [];
  const events = createEvents();

  function begin(call: ModelCall): Waiting {
    waiting?.reply.resolve(over);
    const restarted = epoch !== 0 && call.epoch > epoch;
    waiting = { call, reply: Promise.withResolvers(), callers: 0 };
    epoch = call.epoch;
    tools = call.tools;
    events.tell({ kind: 'call', call, restarted });
    return waiting;
  }

  /** Returns what waits for the reply to a call; a reply if it needs none of the client. */
  function place(call: ModelCall): Waiting | ModelReply {
    if (end !== null) return over;
    if (call.epoch < epoch) return stray;
    if (answered?.key === call.key && answered.epoch === call.epoch) return answered.reply;
    if (waiting === null || call.epoch > epoch) return begin(call);
    if (waiting.call.key === call.key) return waiting;
    // Programs of the task may call the model as well; a client answers one call at a time.
    return waiting.callers > 0 ? stray : begin(call);
  }

  return {
    async ask(call, signal) {
      const placed = place(call);
      return 'callers' in placed ? replyTo(placed, signal) : placed;
    },
    first: events.next,
    async answer(reply) {
      if (!events.hasUnseen() && waiting !== null) {
        answered = { key: waiting.call.key, epoch, reply };
        waiting.reply.resolve(reply);
        waiting = null;
      }
      return events.next();
    },
    tools: () => tools,
    ended(how) {
      if (end !== null) return;
      end = how;
      waiting?.reply.resolve(over);
      waiting = null;
      events.tell({ kind: 'end', end: how });
    },
  };
}

/** Waits for the reply to a call, or until its caller has gone. */
async function replyTo(waiting: Waiting, signal: AbortSignal): Promise<ModelReply> {
  const gone = Promise.withResolvers<never>();
  const leave = (): void => gone.reject(signal.reason);
  waiting.callers += 1;
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([waiting.reply.promise, gone.promise]);
  } finally {
    waiting.callers -= 1;
    signal.removeEventListener('abort', leave);
  }
}

/** Keeps the latest event until the client sees it. The end stays, since nothing follows it. */
function createEvents() {
  let unseen: Event | null = null;
  let arrival = Promise.withResolvers<void>();
  return {
    hasUnseen: () => unseen !== null,
    tell(event: Event): void {
      unseen = event;
      arrival.resolve();
    },
    async next(): Promise<Event> {
      for (;;) {
        const event = unseen;
        if (event !== null) {
          if (event.kind === 'call') unseen = null;
          return event;
        }
        arrival = Promise.withResolvers();
        await arrival.promise;
      }
    },
  };
}
