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
  /** Returns the finished turn that answered the same conversation, or null. */
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
  /** Identifies the conversation; equal for equivalent ones. */
  readonly key: string;
  replay(answered: TurnRecord, createdAt: number): ReplyingTurn<TurnRecord>;
  start(context: TurnContext): RunningTurn<TurnRecord>;
}

/** The session's part in a running turn. */
export interface TurnContext {
  readonly createdAt: number;
  /** Makes the turn durable under the next index, then passes it to `add`. */
  commit(
    make: (index: number) => TurnRecord,
    add: (turn: TurnRecord) => void,
    signal: AbortSignal,
  ): Promise<TurnRecord>;
  /** Records that the conversation is longer than the model's context. */
  noteOverflow(): Promise<void>;
}
