import type { Conversation } from '../../kits/chat-tokens/index.ts';
import type { TurnRecord } from '../branches/turn-record.ts';
import type { ModelRequest } from '../model-request.ts';
import type { RunningTurn, Turn } from './turn.ts';

/** Who answers the model calls of a session: the policy, or an upstream model. It knows the turns, and what goes on from which. */
export interface Speaker {
  readonly turns: readonly TurnRecord[];
  readonly forks: number;
  /** Of the journal. */
  restore(turn: TurnRecord): void;
  /** The finished turn that answered the same conversation, if there is one. */
  answered(key: string): TurnRecord | null;
  /** Cheap: nothing is rendered yet. */
  plan(request: ModelRequest): PlannedTurn;
  /** Throws a Refusal. */
  countTokens(conversation: Conversation): number;
}

/** A request, and what may become of it. Both throw a Refusal where it can't be rendered. */
export interface PlannedTurn {
  /** The same conversation has the same key. */
  readonly key: string;
  replay(answered: TurnRecord, createdAt: number): Turn<TurnRecord>;
  start(book: TurnBook): RunningTurn<TurnRecord>;
}

/** What a turn needs of its session. */
export interface TurnBook {
  readonly createdAt: number;
  /** Makes the turn durable under the next index, and then known to whom `add` tells it. */
  commit(
    make: (index: number) => TurnRecord,
    add: (turn: TurnRecord) => void,
    signal: AbortSignal,
  ): Promise<TurnRecord>;
  /** Its conversation is longer than the model's context. */
  overflow(): Promise<void>;
}
