import type { Upstream } from '../../../workflows/contracts/upstream.ts';
import type { AssistantMessage, Conversation, Message } from '../../kits/chat-tokens/index.ts';
import { type EchoDifference, echoDifferences } from '../branches/echo.ts';
import type { Fingerprint } from '../branches/fingerprint.ts';
import { cutShort, type TurnRecord } from '../branches/turn-record.ts';
import { createTurnTree, type TurnTree } from '../branches/turn-tree.ts';
import type { OpenSession } from '../control.ts';
import { askedTokens, type ModelRequest, overrideOf } from '../model-request.ts';
import { ContextOverflow, Refusal } from '../refusal.ts';
import { askUpstream } from '../upstream/ask.ts';
import type { UpstreamReply } from '../upstream/chat-wire.ts';
import type { Upstreams } from '../upstream/upstreams.ts';
import type { PlannedTurn, Speaker } from './backend.ts';
import { type Mouth, replayTurn, startTurn } from './turn.ts';

export interface UpstreamSpeakerDeps {
  readonly upstreams: Upstreams;
  readonly holdMs: number;
}

/** Where a request stands among the turns, by what it says. */
interface UpstreamPlan {
  readonly fingerprint: Fingerprint;
  readonly parent: number | null;
  readonly newMessages: readonly Message[];
  readonly offersTools: boolean;
  readonly echo: readonly EchoDifference[];
}

/**
 * A model of others, by the texts that it is sent and says. Its turns are journaled, counted and given again as the policy's
 * are, but have no token ids: they can be evaluated, and never trained.
 */
export function createUpstreamSpeaker(deps: UpstreamSpeakerDeps, opened: OpenSession, upstream: Upstream): Speaker {
  const tree = createTurnTree();

  async function ask(
    request: ModelRequest,
    key: string,
    hold: Mouth['hold'],
    signal: AbortSignal,
  ): Promise<UpstreamReply> {
    const model = await deps.upstreams.find(upstream.name);
    if (model.model !== upstream.model) {
      const what = `upstream ${upstream.name}: expected ${upstream.model}, by which this session began, got ${model.model}`;
      throw new Refusal('engine-invalid', what);
    }
    const { sampling } = opened;
    const call = {
      conversation: request.conversation,
      sampling: overrideOf(request, sampling) ?? sampling,
      maxTokens: askedTokens(request, sampling),
    };
    return askUpstream(model, call, key, deps.holdMs, () => hold(true), signal);
  }

  return {
    turns: tree.turns,
    get forks() {
      return tree.forks;
    },
    restore: tree.add,
    answered: tree.answered,
    countTokens() {
      throw new Refusal('unsupported', `the tokens of a prompt for ${upstream.model} can't be counted here`);
    },
    plan(request): PlannedTurn {
      const plan = planOf(tree, request.conversation);
      const { request: key } = plan.fingerprint;
      const asked = askedTokens(request, opened.sampling);
      const sampling = overrideOf(request, opened.sampling);
      const override = sampling === null ? {} : { sampling };
      return {
        key,
        replay: (answered, createdAt) =>
          replayTurn(
            // As unknown in its head as when it was first given.
            { key, createdAt, promptTokens: 0 },
            (say) => tell(answered.reply, say),
            answered,
          ),
        start: (book) =>
          startTurn<UpstreamReply, TurnRecord>({
            ...{ key, createdAt: book.createdAt, promptTokens: 0 },
            async speak({ say, hold }, signal) {
              try {
                const said = await ask(request, key, hold, signal);
                tell(said.reply, say);
                return said;
              } catch (error) {
                if (error instanceof ContextOverflow) await book.overflow();
                throw error;
              }
            },
            commit: (said, startedAt, signal) =>
              book.commit(
                (index) => ({ ...recordOf(plan, said, asked, startedAt, index), ...override }),
                tree.add,
                signal,
              ),
          }),
      };
    },
  };
}

function planOf(tree: TurnTree, conversation: Conversation): UpstreamPlan {
  const fingerprint = tree.fingerprintOf(conversation);
  const offersTools = conversation.tools.length > 0;
  const continued = tree.continued(conversation, fingerprint);
  if (continued === null) {
    return { fingerprint, parent: null, newMessages: conversation.messages, offersTools, echo: [] };
  }
  const { parent, echo } = continued;
  const differences = echoDifferences(echo, parent.reply);
  return { fingerprint, parent: parent.index, newMessages: fingerprint.added, offersTools, echo: differences };
}

function tell({ text, reasoning }: AssistantMessage, say: Mouth['say']): void {
  if (reasoning !== '') say({ kind: 'reasoning', text: reasoning });
  if (text !== '') say({ kind: 'text', text });
}

function recordOf(
  plan: UpstreamPlan,
  said: UpstreamReply,
  asked: number,
  startedAt: number,
  index: number,
): TurnRecord {
  const { fingerprint, parent, newMessages, offersTools, echo } = plan;
  const { reply, finishReason, model, promptTokens, sampledTokens } = said;
  return {
    index,
    parent,
    requestKey: fingerprint.request,
    ...{ promptIds: [], promptLength: promptTokens, promptChecksum: 0 },
    ...{ sampledIds: [], logprobs: [], versions: [], finishReason },
    upstream: { model, sampledTokens },
    ...cutShort(finishReason, sampledTokens, asked),
    startedAt,
    endedAt: Date.now(),
    context: fingerprint.context,
    conversation: fingerprint.withReply(reply),
    messages: newMessages,
    reply,
    faultyCalls: [],
    offersTools,
    ...(echo.length > 0 && { echo }),
  };
}
