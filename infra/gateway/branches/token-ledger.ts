import { pathTo } from '../../../workflows/algorithms/turns.ts';
import { type Prompt, promptOf } from '../../engine/prompt.ts';
import {
  type AssistantMessage,
  type Conversation,
  type Message,
  type Model,
  renderFull,
  renderSuffix,
} from '../../kits/chat-tokens/index.ts';
import { type EchoDifference, echoDifferences } from './echo.ts';
import type { Fingerprint } from './fingerprint.ts';
import { createPromptCache } from './prompt-cache.ts';
import type { TurnRecord } from './turn-record.ts';
import { createTurnTree, type TurnTree } from './turn-tree.ts';

/**
 * The exact token ids of a session, as a tree of turns. When a request extends a turn's reply, only its new messages are
 * rendered and appended: sampled tokens are never encoded again. A request that cannot be proved an extension is rendered as a
 * whole and begins its own branch.
 */
export interface TokenLedger extends Pick<TurnTree, 'turns' | 'forks' | 'fingerprintOf' | 'answered'> {
  /** Plans the prompt of a conversation. Throws a TemplateRejection. */
  plan(conversation: Conversation, fingerprint?: Fingerprint): Plan;
  /** Adds a finished turn, with its plan if this process made it. */
  add(turn: TurnRecord, plan?: Plan): void;
}

/** The prompt that a request sends to the engine, and its position in the tree of turns. */
export interface Plan {
  readonly key: string;
  readonly fingerprint: Fingerprint;
  readonly parent: number | null;
  readonly newIds: readonly number[];
  readonly prompt: Prompt;
  readonly newMessages: readonly Message[];
  readonly offersTools: boolean;
  /** The differences between the parent's reply and the client's echo of it. */
  readonly echo: readonly EchoDifference[];
}

export function createTokenLedger(model: Model): TokenLedger {
  const tree = createTurnTree();
  const { turns } = tree;
  const prompts = createPromptCache(turns);

  function plan(conversation: Conversation, fingerprint = tree.fingerprintOf(conversation)): Plan {
    const { request: key, added } = fingerprint;
    const known = { key, fingerprint, offersTools: conversation.tools.length > 0 };
    const continued = tree.continued(conversation, fingerprint);
    if (continued !== null && added.length > 0) {
      const { parent, echo } = continued;
      const newMessages = withToolNames(added, parent.reply);
      const newIds = renderSuffix(model, newMessages, {
        lastSampledId: parent.sampledIds.at(-1),
        reasoned: { last: parent.reply.reasoning !== '', before: reasonedBefore(pathTo(turns, parent)) },
      });
      if (newIds !== null) {
        const prompt = prompts.after(parent, newIds);
        const differences = echoDifferences(echo, parent.reply);
        return { ...known, parent: parent.index, newIds, prompt, newMessages, echo: differences };
      }
    }
    const newIds = renderFull(model, conversation);
    const newMessages = conversation.messages;
    return { ...known, parent: null, newIds, prompt: promptOf(newIds), newMessages, echo: [] };
  }

  return {
    turns,
    get forks() {
      return tree.forks;
    },
    fingerprintOf: tree.fingerprintOf,
    answered: tree.answered,
    plan,
    add(turn, plan) {
      tree.add(turn);
      if (plan !== undefined) prompts.keep(turn, plan.prompt);
    },
  };
}

/** Whether an earlier reply of the branch has reasoning, or a reply that the client brought along. */
function reasonedBefore(path: readonly TurnRecord[]): boolean {
  const brought = path.some(({ messages }) =>
    messages.some((message) => message.role === 'assistant' && message.reasoning !== ''),
  );
  return brought || path.slice(0, -1).some(({ reply }) => reply.reasoning !== '');
}

/** Adds tools' names to their results: clients name only the call, but templates may print the tool. */
function withToolNames(messages: readonly Message[], reply: AssistantMessage): Message[] {
  return messages.map((message) => {
    if (message.role !== 'tool' || message.name !== null) return message;
    const call = reply.toolCalls.find(({ id }) => id === message.callId);
    return call === undefined ? message : { ...message, name: call.name };
  });
}
