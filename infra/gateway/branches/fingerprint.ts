import { createHash, type Hash } from 'node:crypto';
import type { AssistantMessage, Conversation, Message } from '../../kits/chat-tokens/index.ts';
import { canonicalMessage, imagesOf, sized } from './canonical.ts';

/** Identifies a conversation; equal for two with equivalent messages, as `canonicalMessage` defines it. */
export interface Fingerprint {
  /** The fingerprint of the tools and the leading system messages, which identify the agent. */
  readonly context: string;
  /** The fingerprint up to and including the last assistant message; null when there is none. */
  readonly lastReply: string | null;
  /** The fingerprint before the last assistant message, so of the request that it answered; null when there is none. */
  readonly lastRequest: string | null;
  /** The messages after the last assistant message. */
  readonly added: readonly Message[];
  /** The fingerprint of the whole conversation. */
  readonly request: string;
  /** Returns the fingerprint of the whole conversation with a reply to it. */
  withReply(reply: AssistantMessage): string;
}

/** An earlier conversation with the state of its hash, from which any conversation that begins with it is hashed. */
interface Known {
  readonly tools: string;
  readonly messages: readonly Message[];
  readonly context: string;
  readonly request: string;
  readonly hash: Hash;
}

/** The number of conversations whose fingerprints are kept: enough for an agent and the sub-agents that it runs at the same time. */
const keptConversations = 4;

/**
 * Creates the function that fingerprints a session's conversations. Clients send the whole history with every request: the
 * part that an earlier conversation had is compared text by text, which costs a small part of hashing it.
 */
export function createFingerprints(): (conversation: Conversation) => Fingerprint {
  let known: readonly Known[] = [];

  return (conversation) => {
    const { messages } = conversation;
    const tools = JSON.stringify(conversation.tools);
    const tail = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
    const earlier = known.find((one) => one.tools === tools && beginsWith(messages, tail, one.messages));
    const begun = earlier ?? begin(tools, messages);
    const { context } = begun;
    const from = begun.messages.length;
    const hash = begun.hash.copy();
    hash.update(write(messages.slice(from, Math.max(from, tail - 1))));
    const lastRequest = tail === 0 ? null : digestOf(hash);
    hash.update(write(messages.slice(Math.max(from, tail - 1), tail)));
    const lastReply = tail === 0 ? null : digestOf(hash);
    hash.update(write(messages.slice(Math.max(from, tail))));
    const request = digestOf(hash);
    // Keeps the known messages, not their equal copies in this request, which would take memory a second time.
    const kept = [...begun.messages, ...messages.slice(from)];
    const others = known.filter((one) => one !== earlier && one.request !== request);
    known = [{ tools, messages: kept, context, request, hash }, ...others].slice(0, keptConversations);
    return {
      context,
      lastReply,
      lastRequest,
      added: messages.slice(tail),
      request,
      withReply: (reply) => digestOf(hash.copy().update(write([reply]))),
    };
  };
}

/** Hashes the head of a conversation: its tools and system messages. */
function begin(tools: string, messages: readonly Message[]): Omit<Known, 'request'> {
  const firstOther = messages.findIndex(({ role }) => role !== 'system');
  const head = messages.slice(0, firstOther < 0 ? messages.length : firstOther);
  const hash = createHash('sha256').update(sized(tools)).update(write(head));
  return { tools, messages: head, context: digestOf(hash), hash };
}

/** Joins the messages' texts, since one call of the hash per message costs more than the hashing itself. */
const write = (some: readonly Message[]): string => some.map(canonicalMessage).join('');

const digestOf = (hash: Hash): string => hash.copy().digest('hex').slice(0, 32);

/** Whether a conversation, whose last reply ends at `tail`, begins with an earlier one that is more than a head. */
function beginsWith(messages: readonly Message[], tail: number, earlier: readonly Message[]): boolean {
  if (earlier.length >= tail || earlier.every(({ role }) => role === 'system')) return false;
  return earlier.every((message, at) => isSame(message, messages[at]));
}

/** Whether two messages are literally equal. A merely equivalent message is hashed again. */
function isSame(one: Message, other: Message | undefined): boolean {
  if (one === other) return true;
  if (one.role !== other?.role || one.text !== other.text) return false;
  if (one.role !== 'assistant' || other.role !== 'assistant') {
    const [images, others] = [imagesOf(one), imagesOf(other)];
    return images.length === others.length && images.every((image, at) => image === others[at]);
  }
  const { toolCalls } = other;
  if (one.toolCalls.length !== toolCalls.length) return false;
  return one.toolCalls.every(
    ({ name, arguments: args }, at) => toolCalls[at]?.name === name && toolCalls[at].arguments === args,
  );
}
