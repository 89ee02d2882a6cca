import type { Conversation } from './conversation.ts';

/** A request as a dialect has read it. What else the client asked for (temperature, stop words, ...) is the run's to say. */
export interface ModelRequest {
  readonly conversation: Conversation;
  readonly delivery: 'stream' | 'whole';
  /** The client may ask for less than the run allows; null: it did not. */
  readonly maxTokens: number | null;
}
