import { createHash, type Hash } from 'node:crypto';
import {
  type AssistantMessage,
  type Conversation,
  canonicalMessage,
  type Message,
  sized,
} from '../../kits/chat-tokens/index.ts';

/** By which conversations are known again: equal for two whose messages mean the same, see canonical.ts. */
export interface Fingerprint {
  /** Of the tools and the system messages before anything else: who is talking. */
  readonly context: string;
  /** Of everything up to and including the last assistant message; null when there is none. */
  readonly lastReply: string | null;
  /** Of everything before the last assistant message: the request that it answered. */
  readonly asked: string | null;
  /** What comes behind it. */
  readonly added: readonly Message[];
  /** Of the whole conversation. */
  readonly request: string;
  /** Of the whole conversation and a reply to it. */
  withReply(reply: AssistantMessage): string;
}

/** An earlier conversation, with the state of its hash: whatever begins with it is hashed from there. */
interface Known {
  readonly tools: string;
  readonly messages: readonly Message[];
  readonly context: string;
  readonly request: string;
  readonly hash: Hash;
}

/** An agent and the sub-agents that it runs at once. */
const keptConversations = 4;

/**
 * Fingerprints of a session's conversations. Clients send the whole history with every request: what an earlier one had is
 * compared with it, text by text, which costs a small part of hashing it.
 */
export function createFingerprints(): (conversation: Conversation) => Fingerprint {
  let known: readonly Known[] = [];

  return (conversation) => {
    const { messages } = conversation;
    const tools = JSON.stringify(conversation.tools);
    const tail = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
    const earlier = known.find((one) => one.tools === tools && isBegunBy(messages, tail, one.messages));
    const begun = earlier ?? begin(tools, messages);
    const { context } = begun;
    const from = begun.messages.length;
    const hash = begun.hash.copy();
    hash.update(write(messages.slice(from, Math.max(from, tail - 1))));
    const asked = tail === 0 ? null : digestOf(hash);
    hash.update(write(messages.slice(Math.max(from, tail - 1), tail)));
    const lastReply = tail === 0 ? null : digestOf(hash);
    hash.update(write(messages.slice(Math.max(from, tail))));
    const request = digestOf(hash);
    // Its own messages, not equal ones that came again: those would be held a second time.
    const held = [...begun.messages, ...messages.slice(from)];
    const others = known.filter((one) => one !== earlier && one.request !== request);
    known = [{ tools, messages: held, context, request, hash }, ...others].slice(0, keptConversations);
    return {
      ...{ context, lastReply, asked, added: messages.slice(tail), request },
      withReply: (reply) => digestOf(hash.copy().update(write([reply]))),
    };
  };
}

/** Tools and system messages: what stands at the head of a conversation. */
function begin(tools: string, messages: readonly Message[]): Omit<Known, 'request'> {
  const firstOther = messages.findIndex(({ role }) => role !== 'system');
  const head = messages.slice(0, firstOther < 0 ? messages.length : firstOther);
  const hash = createHash('sha256').update(sized(tools)).update(write(head));
  return { tools, messages: head, context: digestOf(hash), hash };
}

/** Joined, since a call of the hash for each message costs more than its hashing. */
const write = (some: readonly Message[]): string => some.map(canonicalMessage).join('');

const digestOf = (hash: Hash): string => hash.copy().digest('hex').slice(0, 32);

/** Does a conversation, whose last reply ends at `tail`, begin with an earlier one and go on behind the head? */
function isBegunBy(messages: readonly Message[], tail: number, earlier: readonly Message[]): boolean {
  if (earlier.length >= tail || earlier.every(({ role }) => role === 'system')) return false;
  return earlier.every((message, at) => isSame(message, messages[at]));
}

/** In the same words. One that means the same in others is hashed anew. */
function isSame(one: Message, other: Message | undefined): boolean {
  if (one.role !== other?.role || one.text !== other.text) return false;
  if (one.role !== 'assistant' || other.role !== 'assistant') return true;
  const { toolCalls } = other;
  if (one.toolCalls.length !== toolCalls.length) return false;
  return one.toolCalls.every(
    ({ name, arguments: args }, at) => toolCalls[at]?.name === name && toolCalls[at].arguments === args,
  );
}
