import type { Engine } from '../../engine/engine.ts';
import type { AssistantMessage, Model } from '../../kits/chat-tokens/index.ts';
import { createLedger, type Plan } from '../branches/ledger.ts';
import { recordOf } from '../branches/turn-record.ts';
import type { OpenSession } from '../control.ts';
import { askedTokens, type ModelRequest, overrideOf } from '../model-request.ts';
import { ContextOverflow } from '../refusal.ts';
import type { PlannedTurn, Speaker, TurnBook } from './backend.ts';
import type { ContextLength } from './context-length.ts';
import { createListener, type Listening } from './decode-reply.ts';
import { deriveSeed, type SamplingRequest, sampleTurn } from './sampling.ts';
import { type Mouth, replayTurn, startTurn } from './turn.ts';

export interface PolicySpeakerDeps {
  readonly engine: Engine;
  readonly model: Model;
  readonly contextLength: ContextLength;
  readonly holdMs: number;
  /** Whether requests carry a seed; default: they do. */
  readonly seeds?: boolean;
}

/** The policy: by its exact token ids, which the ledger keeps. */
export function createPolicySpeaker(deps: PolicySpeakerDeps, opened: OpenSession): Speaker {
  const { model } = deps;
  const ledger = createLedger(model);

  async function speak(
    plan: Plan,
    listening: Listening,
    request: ModelRequest,
    book: TurnBook,
    { say, rewind, hold }: Mouth,
    signal: AbortSignal,
  ) {
    const listener = createListener(listening, say);
    const sampling = await prepareSampling(deps, opened, plan, request, book, hold, signal);
    const onRewind = (ids: readonly number[]): void => {
      rewind();
      listener.restart(ids);
    };
    const sampled = await sampleTurn(
      { ...sampling, onIds: (ids) => listener.hear(ids), onRewind, onHold: hold },
      signal,
    );
    const { text, reasoning, toolCalls, faultyCalls } = listener.finish();
    const reply: AssistantMessage = { role: 'assistant', text, reasoning, toolCalls };
    const asked = askedTokens(request, opened.sampling);
    return { sampled, asked, override: overrideOf(request, opened.sampling), reply, faultyCalls };
  }

  return {
    get turns() {
      return ledger.turns;
    },
    get forks() {
      return ledger.forks;
    },
    restore: (turn) => ledger.add(turn),
    answered: (key) => ledger.answered(key),
    countTokens: (conversation) => ledger.plan(conversation).prompt.length,
    plan(request): PlannedTurn {
      const { conversation } = request;
      const fingerprint = ledger.fingerprintOf(conversation);
      const { request: key } = fingerprint;
      const render = () => {
        const plan = ledger.plan(conversation, fingerprint);
        const listening: Listening = { plan, model, tools: conversation.tools };
        return { plan, listening, promptTokens: plan.prompt.length };
      };
      return {
        key,
        replay(answered, createdAt) {
          const { listening, promptTokens } = render();
          // Heard anew from its ids.
          const retell = (say: Mouth['say']): void => {
            const listener = createListener(listening, say);
            listener.hear(answered.sampledIds);
            listener.finish();
          };
          return replayTurn({ key, createdAt, promptTokens }, retell, answered);
        },
        start(book) {
          const { plan, listening, promptTokens } = render();
          return startTurn({
            ...{ key, promptTokens, createdAt: book.createdAt },
            speak: (mouth, signal) => speak(plan, listening, request, book, mouth, signal),
            commit: (spoken, startedAt, signal) =>
              book.commit(
                (index) => recordOf(plan, spoken, startedAt, index),
                (turn) => ledger.add(turn, plan),
                signal,
              ),
          });
        },
      };
    },
  };
}

/** Waits for the engine where it must. */
async function prepareSampling(
  { engine, model, holdMs, contextLength, seeds = true }: PolicySpeakerDeps,
  { sampling, seed, session, policyVersion }: OpenSession,
  plan: Plan,
  request: ModelRequest,
  book: TurnBook,
  hold: Mouth['hold'],
  signal: AbortSignal,
) {
  const length = plan.prompt.length;
  const most = await contextLength.wait(() => hold(true), signal);
  if (most !== null && length >= most) {
    await book.overflow();
    throw new ContextOverflow(length, most);
  }
  const asked = askedTokens(request, sampling);
  return {
    engine,
    session,
    name: `${session}-${plan.key.slice(0, 16)}`,
    prompt: plan.prompt,
    maxTokens: most === null ? asked : Math.min(most - length, asked),
    sampling: overrideOf(request, sampling) ?? sampling,
    seed: seeds ? deriveSeed(seed, plan.key) : null,
    stopTokenIds: model.stopTokenIds,
    holdMs,
    policyVersion,
  } satisfies Omit<SamplingRequest, 'onIds' | 'onRewind' | 'onHold'>;
}
