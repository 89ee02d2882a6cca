import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FinishReason, TokenSampling, VersionSpan } from '../../../workflows/contracts/trace.ts';
import type { Engine, GenerateEvent } from '../../engine/engine.ts';
import { extend, type Prompt } from '../../engine/prompt.ts';
import type { OpenSession } from '../control.ts';
import { limits } from '../limits.ts';
import { Refusal } from '../refusal.ts';

/** What the engine sampled, in one part of a turn or in all of them. */
export interface Sampled {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
}

/** A turn, with how often the engine broke it off. */
export interface SampledTurn extends Sampled {
  readonly aborts: number;
}

export interface SamplingRequest {
  readonly engine: Engine;
  readonly session: string;
  readonly name: string;
  readonly prompt: Prompt;
  readonly maxTokens: number;
  readonly sampling: TokenSampling;
  /** Null: the engine draws its own. */
  readonly seed: number | null;
  readonly stopTokenIds: readonly number[];
  readonly holdMs: number;
  readonly policyVersion: OpenSession['policyVersion'];
  /** New ids, in order. */
  readonly onIds: (ids: readonly number[]) => void;
  /** The ids since the last commit are void: the model goes on from `ids`. */
  readonly onRewind: (ids: readonly number[]) => void;
  /** The engine failed or samples nothing, and is waited for; or it samples again. */
  readonly onHold: (isHeld: boolean) => void;
}

/**
 * Samples one turn whatever happens to the engine. An `abort` (weight update) is gone on from with prompt + partial and
 * the remaining budget, each part with its own versions. An engine that is away is tried again until `holdMs` have passed
 * without a token; tokens of a connection that broke are void, since nobody can say which version sampled them.
 */
export async function sampleTurn(request: SamplingRequest, signal: AbortSignal): Promise<SampledTurn> {
  const ids: number[] = [];
  const logprobs: number[] = [];
  const versions: VersionSpan[] = [];
  let aborts = 0;
  const patience = createPatience(request);
  for (let attempt = 0; ; attempt += 1) {
    const part = await samplePart(request, ids, attempt, signal);
    if (part.kind === 'lost') {
      request.onRewind(ids);
      request.onHold(true);
      await patience.wait(part.failure, part.tokens, part.heardAt, signal);
      continue;
    }
    for (const span of part.versions) versions.push(shift(span, ids.length));
    for (const id of part.ids) ids.push(id);
    for (const logprob of part.logprobs) logprobs.push(logprob);
    if (part.finishReason !== 'abort') return { ids, logprobs, versions, finishReason: part.finishReason, aborts };
    aborts += 1;
    if (ids.length >= request.maxTokens) return { ids, logprobs, versions, finishReason: 'length', aborts };
    // An update in mid-turn is the engine's work; one that aborts what it has not begun is away, as the hold sees it.
    if (part.ids.length === 0) request.onHold(true);
    await patience.wait('it aborts every request', part.ids.length, part.heardAt, signal);
  }
}

/** Decides how long to go on with an engine that is away, or that dies again and again over this request. */
function createPatience({ engine, holdMs }: SamplingRequest) {
  let awaySince: number | null = null;
  let failures = 0;
  let delayMs: number = limits.retryFirstMs;
  return {
    async wait(cause: unknown, tokens: number, heardAt: number, signal: AbortSignal): Promise<void> {
      if (tokens > 0) {
        awaySince = null;
        delayMs = limits.retryFirstMs;
        failures += 1;
      } else {
        awaySince ??= heardAt;
      }
      const awayMs = awaySince === null ? 0 : Date.now() - awaySince;
      if (awayMs >= holdMs || failures > limits.interruptions) throw engineAway(engine.url, awayMs, failures, cause);
      await sleep(delayMs, undefined, { signal });
      delayMs = Math.min(delayMs * 2, limits.retryMaxMs);
    },
  };
}

/** `heardAt`: when the engine last said something, or was asked. */
type Part = { readonly heardAt: number } & (
  | ({ readonly kind: 'sampled' } & Sampled)
  | { readonly kind: 'lost'; readonly failure: unknown; readonly tokens: number }
);

async function samplePart(
  request: SamplingRequest,
  before: readonly number[],
  attempt: number,
  signal: AbortSignal,
): Promise<Part> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), limits.engineSilenceMs);
  let heardAt = Date.now();
  const ids: number[] = [];
  const logprobs: number[] = [];
  try {
    const generation = generationOf(request, before, attempt);
    let last: GenerateEvent | null = null;
    for await (const event of request.engine.generate(generation, AbortSignal.any([signal, silence.signal]))) {
      timer.refresh();
      heardAt = Date.now();
      last = event;
      for (const id of event.tokenIds) ids.push(id);
      for (const logprob of event.logprobs) logprobs.push(logprob);
      if (event.tokenIds.length === 0) continue;
      request.onHold(false);
      request.onIds(event.tokenIds);
    }
    return { kind: 'sampled', heardAt, ...checked(request.engine, ids, logprobs, last) };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const lost = { kind: 'lost', heardAt, tokens: ids.length } as const;
    if (silence.signal.aborted) return { ...lost, failure: `no token in ${limits.engineSilenceMs} ms` };
    if (isAway(error)) return { ...lost, failure: error };
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function generationOf(
  { prompt, maxTokens, sampling, seed, ...request }: SamplingRequest,
  before: readonly number[],
  attempt: number,
) {
  return {
    requestId: `${request.name}-${attempt}`,
    session: request.session,
    prompt: extend(prompt, before),
    maxTokens: maxTokens - before.length,
    temperature: sampling.temperature,
    topP: sampling.topP,
    topK: sampling.topK,
    stopTokenIds: request.stopTokenIds,
    policyVersion: request.policyVersion,
    ...(seed !== null && { seed: seedOfPart(seed, before.length) }),
  };
}

/** A part that begins elsewhere must not draw the same random numbers again. */
const seedOfPart = (seed: number, at: number): number => (at === 0 ? seed : deriveSeed(seed, String(at)));

/** The adapter has checked each event; here, that the events are a whole. */
function checked(engine: Engine, ids: number[], logprobs: number[], last: GenerateEvent | null): Sampled {
  const { finishReason, versions } = last ?? {};
  if (finishReason === undefined) {
    throw new TemperFailure('EngineUnavailable', `${engine.url}: expected a finish reason at the end, got none`);
  }
  if (versions === undefined || versions.at(-1)?.end !== (ids.length || undefined) || ids.length !== logprobs.length) {
    throw new TemperFailure(
      'EngineInvalid',
      `${engine.url}: expected versions and logprobs for ${ids.length} tokens, got ${JSON.stringify(versions)} and ${logprobs.length} logprobs`,
    );
  }
  return { ids, logprobs, versions, finishReason };
}

/** Whatever passes: an engine that is down, or one that took half an update and waits for the next publication. */
function isAway(error: unknown): boolean {
  return error instanceof TemperFailure && (error.type === 'EngineUnavailable' || error.type === 'EngineQuarantined');
}

const shift = ({ version, start, end }: VersionSpan, by: number): VersionSpan => ({
  version,
  start: start + by,
  end: end + by,
});

function engineAway(url: string, awayMs: number, failures: number, cause: unknown): Refusal {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const what = `the engine ${url} stayed away for ${awayMs} ms and broke off ${failures} times: ${reason}`;
  return new Refusal('engine-unavailable', what, { cause });
}

/** A seed of its own for each turn, by what is asked: the same after a restart and in whatever order requests come. */
export function deriveSeed(seed: number, key: string): number {
  return createHash('sha256').update(`${seed}:${key}`).digest().readUInt32LE() >>> 1;
}
