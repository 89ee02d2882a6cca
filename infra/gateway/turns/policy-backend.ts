import { crc32 } from 'node:zlib';
import type { TokenSampling } from '../../../workflows/contracts/trace.ts';
import type { Prompt } from '../../engine/prompt.ts';
import type { AssistantMessage, Model } from '../../kits/chat-tokens/index.ts';
import { createTokenLedger, type Plan } from '../branches/token-ledger.ts';
import { cutShort, type TurnRecord, turnKeyOf, withoutImages } from '../branches/turn-record.ts';
import type { OpenSession } from '../control.ts';
import { ContextOverflow } from '../gateway-error.ts';
import { askedTokens, type ModelRequest, overrideOf } from '../model-call.ts';
import { createReplyDecoder, type DecoderInput } from './decode-reply.ts';
import { type ModelBackend, type PlannedTurn, sampleFields, type TurnContext } from './model-backend.ts';
import { oversizeOf } from './oversize.ts';
import type { PolicyEngines } from './policy-engines.ts';
import { deriveSeed, type SampledTurn, sampleTurn } from './sampling.ts';
import { beginTiming, type Timing } from './timing.ts';
import { type ReplySink, replayTurn, startTurn } from './turn.ts';

export interface PolicyBackendDeps {
  readonly policies: PolicyEngines;
  readonly model: Model;
  /** The time that a turn waits for an engine that is away. */
  readonly engineGraceMs: number;
  /** Whether requests carry a seed. Default: true. */
  readonly seeds?: boolean | undefined;
}

/** A request whose prompt has been rendered. */
interface RenderedRequest extends DecoderInput {
  readonly request: ModelRequest;
}

interface SampleInput {
  readonly rendered: RenderedRequest;
  readonly sink: ReplySink;
  readonly context: TurnContext;
}

/** A turn that the policy has sampled, before it has an index. */
export interface SampledReply {
  readonly sampled: SampledTurn;
  /** The number of tokens that client and run allow, whatever the context leaves. */
  readonly asked: number;
  /** The sampling parameters, where they are not the run's; else null. */
  readonly override: TokenSampling | null;
  readonly reply: AssistantMessage;
  readonly faultyCalls: readonly string[];
}

/** Creates the backend of the policy, which works on the exact token ids that the ledger keeps. */
export function createPolicyBackend(deps: PolicyBackendDeps, opened: OpenSession): ModelBackend {
  const ledger = createTokenLedger(deps.model);
  return {
    get turns() {
      return ledger.turns;
    },
    get forks() {
      return ledger.forks;
    },
    restore: (turn) => ledger.add(turn),
    answered: (key) => ledger.answered(key),
    oversizeOf: (conversation) =>
      oversizeOf(conversation, async () => (await deps.policies.of(opened.policy)).contextLength.look()),
    countTokens: (conversation) => ledger.plan(conversation).prompt.length,
    plan(request): PlannedTurn {
      const { conversation } = request;
      const fingerprint = ledger.fingerprintOf(conversation);
      const { request: key } = fingerprint;
      const render = (): RenderedRequest => ({
        request,
        plan: ledger.plan(conversation, fingerprint),
        model: deps.model,
        tools: conversation.tools,
      });
      return {
        key,
        replay(answered, createdAt) {
          const rendered = render();
          return replayTurn(
            { key: keyOf(answered), createdAt, promptTokens: rendered.plan.prompt.length },
            (push) => decodeAgain(rendered, answered, push),
            answered,
          );
        },
        start(context) {
          const rendered = render();
          const { plan } = rendered;
          return startTurn<SampledReply, TurnRecord>({
            key: context.sample.key,
            createdAt: context.createdAt,
            promptTokens: plan.prompt.length,
            sample: (sink, signal) => sampleReply(deps, opened, { rendered, sink, context }, signal),
            commit: (sampled, timing, signal) =>
              context.commit(
                (index) => ({ ...recordOf(plan, sampled, timing, index), ...sampleFields(context.sample) }),
                (turn) => ledger.add(turn, plan),
                signal,
              ),
          });
        },
      };
    },
  };
}

const keyOf = ({ requestKey, sample = 1 }: TurnRecord): string => turnKeyOf(requestKey, sample);

function decodeAgain(input: DecoderInput, { sampledIds }: TurnRecord, push: ReplySink['push']): void {
  const decoder = createReplyDecoder(input, push);
  decoder.push(sampledIds);
  decoder.finish();
}

async function sampleReply(
  { policies, model, engineGraceMs, seeds = true }: PolicyBackendDeps,
  { session, sampling, seed, policy, policyVersion }: OpenSession,
  { rendered, sink, context }: SampleInput,
  signal: AbortSignal,
): Promise<SampledReply> {
  const { request, plan } = rendered;
  const timing = beginTiming();
  const decoder = createReplyDecoder(rendered, sink.push);
  const asked = askedTokens(request, sampling);
  const override = overrideOf(request, sampling);
  const { engine, contextLength } = await policies.of(policy);
  const onUnavailable = (): void => {
    sink.setWaiting(true);
    sink.setHeld(true);
  };
  const length = await contextLength.wait(onUnavailable, signal);
  sink.setHeld(false);
  const left = length === null ? Number.POSITIVE_INFINITY : length - plan.prompt.length;
  if (length !== null && left <= 0) {
    await context.noteOverflow();
    throw new ContextOverflow(plan.prompt.length, length);
  }
  const sampled = await sampleTurn(
    {
      engine,
      session,
      name: `${session}-${context.sample.key.slice(0, 16)}`,
      prompt: plan.prompt,
      maxTokens: Math.min(left, asked),
      sampling: override ?? sampling,
      seed: seeds ? deriveSeed(seed, context.sample.key) : null,
      stopTokenIds: model.stopTokenIds,
      engineGraceMs,
      policyVersion,
      onIds: decoder.push,
      onRewind(ids) {
        sink.rewind();
        decoder.restart(ids);
      },
      onWaiting: sink.setWaiting,
      onHeld: sink.setHeld,
      onCut(sampled) {
        // A call that was cut is no fault of the policy.
        const cut = { sampled, asked, override, reply: replyOf(rendered, sampled.ids), faultyCalls: [] };
        context.noteCut({ ...recordOf(plan, cut, timing, -1), ...sampleFields(context.sample) });
      },
    },
    signal,
  );
  return { sampled, asked, override, ...finishedReply(decoder) };
}

/** Decodes what was sampled of a reply that was cut. */
function replyOf(rendered: RenderedRequest, ids: readonly number[]): AssistantMessage {
  const decoder = createReplyDecoder(rendered, () => {});
  decoder.push(ids);
  return finishedReply(decoder).reply;
}

function finishedReply(decoder: ReturnType<typeof createReplyDecoder>): Pick<SampledReply, 'reply' | 'faultyCalls'> {
  const { faultyCalls, ...said } = decoder.finish();
  return { reply: { role: 'assistant', ...said }, faultyCalls };
}

/** Makes the record of a turn that the policy has sampled. */
export function recordOf(
  plan: Plan,
  { sampled, asked, override, reply, faultyCalls }: SampledReply,
  { startedAt, endedAt }: Timing,
  index: number,
): TurnRecord {
  return {
    index,
    parent: plan.parent,
    requestKey: plan.key,
    promptIds: plan.newIds,
    promptLength: plan.prompt.length,
    promptChecksum: checksumOf(plan.prompt),
    sampledIds: sampled.ids,
    logprobs: sampled.logprobs,
    versions: sampled.versions,
    finishReason: sampled.finishReason,
    ...(sampled.aborts === 0 ? {} : { aborts: sampled.aborts }),
    ...cutShort(sampled.finishReason, sampled.ids.length, asked),
    ...(override !== null && { sampling: override }),
    startedAt,
    endedAt: endedAt(),
    context: plan.fingerprint.context,
    conversation: plan.fingerprint.withReply(reply),
    messages: withoutImages(plan.newMessages),
    reply,
    faultyCalls,
    offersTools: plan.offersTools,
    ...(plan.echo.length === 0 ? {} : { echo: plan.echo }),
  };
}

/** The CRC-32 of a chunk of a prompt, together with what precedes it. */
interface ChunkSum {
  readonly before: number;
  readonly sum: number;
}

/** The sums of chunks that were sent: a long one is shared by all later turns of its branch, and never changes. */
const chunkSums = new WeakMap<Buffer, ChunkSum>();

/** The CRC-32 of the bytes that the engine was sent. */
function checksumOf({ chunks }: Prompt): number {
  return chunks.reduce((before, chunk) => {
    const known = chunkSums.get(chunk);
    if (known?.before === before) return known.sum;
    const sum = crc32(chunk, before);
    chunkSums.set(chunk, { before, sum });
    return sum;
  }, 0);
}
