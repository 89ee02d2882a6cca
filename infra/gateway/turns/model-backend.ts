import type { Conversation } from '../../kits/chat-tokens/index.ts';
import type { TurnRecord } from '../branches/turn-record.ts';
import type { ContextOverflow } from '../gateway-error.ts';
import type { ModelRequest } from '../model-call.ts';
import type { ReplyingTurn, RunningTurn } from './turn.ts';

/** The model that answers a session's requests: the policy or an upstream model. It keeps the tree of the session's turns. */
export interface ModelBackend {
  readonly turns: readonly TurnRecord[];
  readonly forks: number;
  /** Adds a turn that was read from the journal. */
  restore(turn: TurnRecord): void;
  /** Returns the finished turn of a key, or null. */
  answered(key: string): TurnRecord | null;
  /** Returns the refusal of a conversation that is certainly too long for the model; null if it may fit. Cheap. */
  oversizeOf(conversation: Conversation): Promise<ContextOverflow | null>;
  /** Plans a request. Cheap: nothing is rendered yet. */
  plan(request: ModelRequest): PlannedTurn;
  /** Counts the tokens of a conversation's prompt. Throws a TemplateRejection, or a GatewayError where it cannot count. */
  countTokens(conversation: Conversation): number;
}

/** A request that can be answered in one of two ways. Both throw a TemplateRejection when the prompt cannot be rendered. */
export interface PlannedTurn {
  /** Identifies the conversation; equal for equivalent ones. The key of the turn also depends on its sample. */
  readonly key: string;
  replay(answered: TurnRecord, createdAt: number): ReplyingTurn<TurnRecord>;
  start(context: TurnContext): RunningTurn<TurnRecord>;
}

/** One of the turns that answer the same conversation. */
export interface TurnSample {
  /** The key of the turn. */
  readonly key: string;
  /** The number among the samples of the conversation, from 1. */
  readonly number: number;
  /** The names of the request that began it. */
  readonly askedBy: readonly string[];
}

/** Returns the fields of a turn's record that say which sample it is. */
export const sampleFields = ({ number, askedBy }: TurnSample): Pick<TurnRecord, 'sample' | 'askedBy'> => ({
  ...(number > 1 && { sample: number }),
  ...(askedBy.length > 0 && { askedBy }),
});

/** The session's part in a running turn. */
export interface TurnContext {
  readonly createdAt: number;
  /** The sample of the conversation that the turn is. */
  readonly sample: TurnSample;
  /** Makes the turn durable under the next index, then passes it to `add`. */
  commit(
    make: (index: number) => TurnRecord,
    add: (turn: TurnRecord) => void,
    signal: AbortSignal,
  ): Promise<TurnRecord>;
  /** Records a turn whose client left, with the tokens sampled until then. */
  noteCut(turn: TurnRecord): void;
  /** Records that the conversation is longer than the model's context. */
  noteOverflow(): Promise<void>;
}
