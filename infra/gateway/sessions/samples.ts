import { type TurnRecord, turnKeyOf } from '../branches/turn-record.ts';
import type { TurnSample } from '../turns/model-backend.ts';

/** The part of a request that tells a retry from a request for a further sample. */
export interface RequestOrigin {
  /** The name of the request: the relay's, which is the same each time that the relay sends it, or one of the gateway's own. */
  readonly id: string;
  /** The names by which a repetition is recognised: that of the relay, and the client's idempotency key. */
  readonly names: readonly string[];
  /** Whether the client says that this is a retry. */
  readonly isRetry: boolean;
  /** The names of earlier requests whose replies have not reached the client whole, by its relay. */
  readonly unread: readonly string[];
}

/** The delivery of a turn's whole reply: the index of the turn, and the name of the request whose client has got it. */
export interface Delivery {
  readonly turn: number;
  readonly to: string;
}

/** A turn among those that answer the same conversation. */
export interface Sample extends TurnSample {
  readonly conversation: string;
}

/** The samples of each conversation, and whether a client has got the reply of each. */
export interface Samples {
  /** Adds a turn that was read from the journal. Its reply counts as lost until something shows that a client has got it. */
  restore(turn: TurnRecord): void;
  /** Adds a delivery that was read from the journal. */
  restoreDelivery(delivery: Delivery): void;
  /**
   * Returns the sample that a request repeats; null if it asks for a further one. A request of the same name is the same request.
   * Otherwise a request repeats a sample whose reply was lost: no client has got it whole, and it is being sent to none. If no
   * reply was lost, a request that is marked as a retry repeats the last sample, unless an earlier request has got no sample.
   */
  find(conversation: string, origin: RequestOrigin): Sample | null;
  /** Returns the further sample that a request would begin. */
  next(conversation: string, origin: RequestOrigin): Sample;
  /** Adds a sample whose turn begins, or begins again. */
  begin(sample: Sample): void;
  /** Notes that a turn is in the journal. */
  answered(turn: TurnRecord): void;
  /** Removes a sample whose turn has failed: its request has got none. */
  fail(sample: Sample): void;
  /** Notes that a request has got no sample. */
  refuse(conversation: string, origin: RequestOrigin): void;
  /** Notes that the reply of a sample is being sent. The returned function says that this has ended, and whether it was sent whole. */
  send(sample: Sample, origin: RequestOrigin): (isWhole: boolean) => void;
  /** Returns the deliveries that the journal does not show, and counts them as written from then on. */
  takeUnwritten(): readonly Delivery[];
}

interface Known extends Sample {
  /** The requests to which the reply is being sent. */
  readonly sending: Set<RequestOrigin>;
  /** The index of its turn; null while it runs. */
  turn: number | null;
  /** The name of the request whose client has got the whole reply; null if none has. */
  deliveredTo: string | null;
  /** Whether a later turn continues the reply, for which its client must have got it. */
  isContinued: boolean;
  /** Whether the journal shows the delivery. */
  isWritten: boolean;
}

/** The number of requests without a sample that are remembered: enough for those of a moment. */
const mostRefused = 256;

/** The prefix that tells an idempotency key from the name that a relay gave. */
export const clientKeyPrefix = 'key:';
const hasKey = (names: readonly string[]): boolean => names.some((name) => name.startsWith(clientKeyPrefix));

export function createSamples(): Samples {
  return new SampleTable();
}

class SampleTable implements Samples {
  readonly #byConversation = new Map<string, readonly Known[]>();
  readonly #byTurn = new Map<number, Known>();
  /** The conversations of requests that have got no sample, by the names of the requests. */
  readonly #refused = new Map<string, string>();

  restore(turn: TurnRecord): void {
    const { requestKey: conversation, sample: number = 1, askedBy = [] } = turn;
    this.begin({ conversation, key: turnKeyOf(conversation, number), number, askedBy });
    this.answered(turn);
  }

  restoreDelivery({ turn, to }: Delivery): void {
    const known = this.#byTurn.get(turn);
    if (known === undefined) return;
    known.deliveredTo = to;
    known.isWritten = true;
  }

  find(conversation: string, { names, isRetry, unread }: RequestOrigin): Sample | null {
    const all = this.#samplesOf(conversation);
    const same = all.find(({ askedBy }) => askedBy.some((name) => names.includes(name)));
    if (same !== undefined) return same;
    for (const known of all) {
      if (known.deliveredTo !== null && unread.includes(known.deliveredTo)) known.deliveredTo = null;
    }
    const isLost = ({ isContinued, deliveredTo, sending, askedBy }: Known): boolean =>
      !isContinued &&
      deliveredTo === null &&
      [...sending].every(({ id }) => unread.includes(id)) &&
      !(hasKey(names) && hasKey(askedBy));
    const lost = all.find(isLost);
    if (lost !== undefined || !isRetry) return lost ?? null;
    return this.#takeRefused(conversation) ? null : (all.at(-1) ?? null);
  }

  next(conversation: string, { names: askedBy }: RequestOrigin): Sample {
    const taken = new Set(this.#samplesOf(conversation).map(({ number }) => number));
    let number = 1;
    while (taken.has(number)) number += 1;
    return { conversation, key: turnKeyOf(conversation, number), number, askedBy };
  }

  begin(sample: Sample): void {
    if (this.#knownOf(sample) !== undefined) return;
    const known = { ...sample, sending: new Set<RequestOrigin>(), turn: null, deliveredTo: null };
    const all = [...this.#samplesOf(sample.conversation), { ...known, isContinued: false, isWritten: false }];
    this.#byConversation.set(sample.conversation, all);
  }

  answered({ requestKey: conversation, sample = 1, index, parent }: TurnRecord): void {
    const known = this.#knownOf({ conversation, key: turnKeyOf(conversation, sample) });
    if (known !== undefined) {
      known.turn = index;
      this.#byTurn.set(index, known);
    }
    const continued = parent === null ? undefined : this.#byTurn.get(parent);
    if (continued !== undefined) continued.isContinued = true;
  }

  fail(sample: Sample): void {
    const { conversation, key, askedBy } = sample;
    const left = this.#samplesOf(conversation).filter((known) => known.key !== key || known.turn !== null);
    if (left.length === 0) this.#byConversation.delete(conversation);
    else this.#byConversation.set(conversation, left);
    this.#refuse(conversation, askedBy[0] ?? key);
  }

  refuse(conversation: string, { id }: RequestOrigin): void {
    this.#refuse(conversation, id);
  }

  send(sample: Sample, origin: RequestOrigin): (isWhole: boolean) => void {
    const known = this.#knownOf(sample);
    known?.sending.add(origin);
    this.#refused.delete(origin.id);
    return (isWhole) => {
      known?.sending.delete(origin);
      if (isWhole && known !== undefined) known.deliveredTo ??= origin.id;
    };
  }

  takeUnwritten(): readonly Delivery[] {
    return [...this.#byTurn].flatMap(([turn, known]) => {
      const { deliveredTo: to, isContinued, isWritten } = known;
      if (to === null || isContinued || isWritten) return [];
      known.isWritten = true;
      return [{ turn, to }];
    });
  }

  #samplesOf(conversation: string): readonly Known[] {
    return this.#byConversation.get(conversation) ?? [];
  }

  #knownOf({ conversation, key }: Pick<Sample, 'conversation' | 'key'>): Known | undefined {
    return this.#samplesOf(conversation).find((known) => known.key === key);
  }

  #refuse(conversation: string, name: string): void {
    this.#refused.set(name, conversation);
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > mostRefused && oldest !== undefined) this.#refused.delete(oldest);
  }

  /** Forgets one of the requests for a conversation that have got no sample; returns whether there was one. */
  #takeRefused(conversation: string): boolean {
    for (const [name, of] of this.#refused) if (of === conversation) return this.#refused.delete(name);
    return false;
  }
}
