/**
 * The one conversation type behind all dialects. Texts are kept as the client sent them. A tool call keeps its arguments as
 * the text that was sampled or sent, since parsing would lose numbers that JavaScript cannot represent.
 */
export interface Conversation {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
}

export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

export interface SystemMessage {
  readonly role: 'system';
  readonly text: string;
}

export interface UserMessage extends Pictured {
  readonly role: 'user';
  /** The text, in which a note stands for each image. */
  readonly text: string;
}

/** A message that may have images. A model that reads text only gets its text. */
export interface Pictured {
  /** Text and images in order; absent if there are no images. */
  readonly parts?: readonly (string | Image)[];
}

export interface Image {
  /** A web address, or a `data:` URL with the image itself. */
  readonly url: string;
}

export interface AssistantMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
}

/** The result of a tool call. */
export interface ToolMessage extends Pictured {
  readonly role: 'tool';
  readonly callId: string;
  /** The tool's name, which some templates print; null when the client did not send it. */
  readonly name: string | null;
  readonly text: string;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** The JSON text of an object. */
  readonly arguments: string;
}

export interface Tool {
  readonly name: string;
  readonly description: string | null;
  /** A JSON schema; null when the client gave none. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
}
