import type { Upstream } from '../../../workflows/contracts/upstream.ts';
import type { AssistantMessage, Conversation, Message } from '../../kits/chat-tokens/index.ts';
import { type EchoDifference, echoDifferences } from '../branches/echo.ts';
import type { Fingerprint } from '../branches/fingerprint.ts';
import { cutShort, type TurnRecord, turnKeyOf, withoutImages } from '../branches/turn-record.ts';
import { createTurnTree, type TurnTree } from '../branches/turn-tree.ts';
import type { OpenSession } from '../control.ts';
import { ContextOverflow, GatewayError } from '../gateway-error.ts';
import { askedTokens, type ModelRequest, overrideOf } from '../model-call.ts';
import { askUpstream } from '../upstream/ask.ts';
import type { UpstreamReply } from '../upstream/chat-wire.ts';
import type { Upstreams } from '../upstream/upstreams.ts';
import { type ModelBackend, type PlannedTurn, sampleFields } from './model-backend.ts';
import type { Timing } from './timing.ts';
import { type ReplySink, replayTurn, startTurn } from './turn.ts';

export interface UpstreamBackendDeps {
  readonly upstreams: Upstreams;
  /** The time that a turn waits for a model that is away. */
  readonly engineGraceMs: number;
}

/** The position of a request in the tree of turns. */
interface UpstreamPlan {
  readonly fingerprint: Fingerprint;
  readonly parent: number | null;
  readonly newMessages: readonly Message[];
  readonly offersTools: boolean;
  readonly echo: readonly EchoDifference[];
}

/**
 * Creates the backend of an external model, text in and text out. Its turns are journaled, counted and replayed like the
 * policy's, but have no token ids: they can be evaluated, never trained.
 */
export function createUpstreamBackend(
  deps: UpstreamBackendDeps,
  opened: OpenSession,
  upstream: Upstream,
): ModelBackend {
  const tree = createTurnTree();
  return {
    turns: tree.turns,
    get forks() {
      return tree.forks;
    },
    restore: tree.add,
    answered: tree.answered,
    // Nothing is rendered here, and the model's server judges the length.
    oversizeOf: async () => null,
    countTokens() {
      throw new GatewayError('unsupported', `the tokens of a prompt for ${upstream.model} cannot be counted here`);
    },
    plan(request): PlannedTurn {
      const plan = planOf(tree, request.conversation);
      const { request: key } = plan.fingerprint;
      return {
        key,
        replay: (answered, createdAt) =>
          replayTurn(
            // The head of the first reply was sent before the prompt's length was known, so this one has none either.
            { key: turnKeyOf(key, answered.sample ?? 1), createdAt, promptTokens: 0 },
            (push) => pushReply(answered.reply, push),
            answered,
          ),
        start: (context) =>
          startTurn<UpstreamReply, TurnRecord>({
            key: context.sample.key,
            createdAt: context.createdAt,
            promptTokens: 0,
            async sample(sink, signal) {
              try {
                const replied = await askModel(
                  deps,
                  { opened, upstream, request, key: context.sample.key, sink },
                  signal,
                );
                pushReply(replied.reply, sink.push);
                return replied;
              } catch (error) {
                if (error instanceof ContextOverflow) await context.noteOverflow();
                throw error;
              }
            },
            commit: (replied, timing, signal) =>
              context.commit(
                (index) => ({
                  ...recordOf(plan, replied, requestedSampling(request, opened), { index, timing }),
                  ...sampleFields(context.sample),
                }),
                tree.add,
                signal,
              ),
          }),
      };
    },
  };
}

interface ModelCall {
  readonly opened: OpenSession;
  readonly upstream: Upstream;
  readonly request: ModelRequest;
  readonly key: string;
  readonly sink: ReplySink;
}

async function askModel(
  { upstreams, engineGraceMs }: UpstreamBackendDeps,
  { opened, upstream, request, key, sink }: ModelCall,
  signal: AbortSignal,
): Promise<UpstreamReply> {
  const model = await upstreams.find(upstream.name);
  if (model.model !== upstream.model) {
    throw new GatewayError(
      'engine-invalid',
      `upstream ${upstream.name}: this session began with the model ${upstream.model}, but upstreams.json now names ${model.model}`,
    );
  }
  const { asked, override } = requestedSampling(request, opened);
  return askUpstream(
    {
      upstream: model,
      call: { conversation: request.conversation, sampling: override ?? opened.sampling, maxTokens: asked },
      session: opened.session,
      key,
      graceMs: engineGraceMs,
      onUnavailable: () => sink.setWaiting(true),
    },
    signal,
  );
}

const requestedSampling = (request: ModelRequest, { sampling }: OpenSession) => ({
  asked: askedTokens(request, sampling),
  override: overrideOf(request, sampling),
});

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

function pushReply({ text, reasoning }: AssistantMessage, push: ReplySink['push']): void {
  if (reasoning !== '') push({ kind: 'reasoning', text: reasoning });
  if (text !== '') push({ kind: 'text', text });
}

function recordOf(
  { fingerprint, parent, newMessages, offersTools, echo }: UpstreamPlan,
  { reply, finishReason, model, promptTokens, sampledTokens }: UpstreamReply,
  { asked, override }: ReturnType<typeof requestedSampling>,
  { index, timing }: { readonly index: number; readonly timing: Timing },
): TurnRecord {
  return {
    index,
    parent,
    requestKey: fingerprint.request,
    promptIds: [],
    promptLength: promptTokens,
    promptChecksum: 0,
    sampledIds: [],
    logprobs: [],
    versions: [],
    finishReason,
    upstream: { model, sampledTokens },
    ...cutShort(finishReason, sampledTokens, asked),
    ...(override !== null && { sampling: override }),
    startedAt: timing.startedAt,
    endedAt: timing.endedAt(),
    context: fingerprint.context,
    conversation: fingerprint.withReply(reply),
    messages: withoutImages(newMessages),
    reply,
    faultyCalls: [],
    offersTools,
    ...(echo.length > 0 && { echo }),
  };
}
