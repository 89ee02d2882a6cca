import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FinishReason, TokenSampling, VersionSpan } from '../../../workflows/contracts/trace.ts';
import type { Engine, GenerateEvent } from '../../engine/engine.ts';
import { extend, type Prompt } from '../../engine/prompt.ts';
import type { OpenSession } from '../control.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';

/** The tokens that the engine sampled, in one part of a turn or in the whole turn. */
export interface Sampled {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
}

/** A sampled turn, with the number of times that the engine aborted it. */
export interface SampledTurn extends Sampled {
  readonly aborts: number;
}

export interface SamplingRequest extends Required<Pick<OpenSession, 'session' | 'policyVersion'>> {
  readonly engine: Engine;
  readonly name: string;
  readonly prompt: Prompt;
  readonly maxTokens: number;
  readonly sampling: TokenSampling;
  /** The seed of the whole turn; null lets the engine draw its own. */
  readonly seed: number | null;
  readonly stopTokenIds: readonly number[];
  readonly engineGraceMs: number;
  /** Receives new ids, in order. */
  readonly onIds: (ids: readonly number[]) => void;
  /** Called when sampled ids were lost: the reply so far is `ids`, whatever `onIds` received. */
  readonly onRewind: (ids: readonly number[]) => void;
  /** Called with true when the engine failed or samples nothing and is retried; with false when it samples again. */
  readonly onWaiting: (isWaiting: boolean) => void;
  /** Called with true when nothing samples the turn, whatever the engine is waited for; with false when it is sampled again. */
  readonly onHeld: (isHeld: boolean) => void;
  /** Receives what was sampled of a turn that is aborted, if there is something. */
  readonly onCut: (sampled: SampledTurn) => void;
}

/**
 * Samples one turn across engine failures. After an `abort` (weight update) sampling continues from prompt + partial output
 * with the remaining budget; each part has its own versions. An engine that is away is retried until `engineGraceMs` have
 * passed without a token. The tokens of a lost connection are dropped, since it is unknown which version sampled them.
 * Throws a GatewayError `engine-unavailable`, or TemperFailure EngineInvalid.
 */
export async function sampleTurn(request: SamplingRequest, signal: AbortSignal): Promise<SampledTurn> {
  const turn = { ids: [], logprobs: [], versions: [], aborts: 0 };
  try {
    return { ...turn, ...(await sampleParts(request, turn, signal)) };
  } catch (error) {
    if (signal.aborted && turn.ids.length > 0) request.onCut({ ...turn, finishReason: 'abort' });
    throw error;
  }
}

/** The parts of a turn that have been sampled. */
interface TurnSoFar {
  readonly ids: number[];
  readonly logprobs: number[];
  readonly versions: VersionSpan[];
  aborts: number;
}

/** Samples the parts of a turn until it ends. */
async function sampleParts(
  request: SamplingRequest,
  turn: TurnSoFar,
  signal: AbortSignal,
): Promise<Pick<SampledTurn, 'aborts' | 'finishReason'>> {
  const retries = createRetries(request);
  for (let attempt = 0; ; attempt += 1) {
    const part = await samplePart(request, turn.ids, attempt, signal);
    if (part.kind === 'lost') {
      request.onRewind(turn.ids);
      request.onWaiting(true);
      request.onHeld(true);
      await retries.wait(part.failure, part.tokens, part.lastEventAt, signal);
      continue;
    }
    for (const span of part.versions) turn.versions.push(shift(span, turn.ids.length));
    for (const id of part.ids) turn.ids.push(id);
    for (const logprob of part.logprobs) turn.logprobs.push(logprob);
    if (part.kind === 'cut') throw signal.reason;
    if (part.finishReason !== 'abort') return { aborts: turn.aborts, finishReason: part.finishReason };
    turn.aborts += 1;
    if (turn.ids.length >= request.maxTokens) return { aborts: turn.aborts, finishReason: 'length' };
    // An engine that aborts after some tokens is updating its weights; one that aborts before the first counts as away.
    if (part.ids.length === 0) request.onWaiting(true);
    request.onHeld(true);
    await retries.wait('it aborts every request', part.ids.length, part.lastEventAt, signal);
  }
}

/** Decides how long to retry an engine that is away, or that fails repeatedly while it samples this request. */
function createRetries({ engine, engineGraceMs }: SamplingRequest) {
  let awaySince: number | null = null;
  let failures = 0;
  let delayMs: number = limits.retryFirstMs;
  return {
    /** Waits before the next attempt. Throws a GatewayError once the time or the number of failures is used up. */
    async wait(cause: unknown, tokens: number, lastEventAt: number, signal: AbortSignal): Promise<void> {
      if (tokens > 0) {
        awaySince = null;
        delayMs = limits.retryFirstMs;
        failures += 1;
      } else {
        awaySince ??= lastEventAt;
      }
      const awayMs = awaySince === null ? 0 : performance.now() - awaySince;
      if (awayMs >= engineGraceMs || failures > limits.engineAborts) {
        throw engineUnavailable(engine.url, awayMs, failures, cause);
      }
      await sleep(delayMs, undefined, { signal });
      delayMs = Math.min(delayMs * 2, limits.retryMaxMs);
    },
  };
}

/** The result of one request to the engine. `lastEventAt`: the time of the engine's last sign of life, or of the request. */
type Part = { readonly lastEventAt: number } & (
  | ({ readonly kind: 'sampled' } & Sampled)
  | ({ readonly kind: 'cut' } & Omit<Sampled, 'finishReason'>)
  | { readonly kind: 'lost'; readonly failure: unknown; readonly tokens: number }
);

async function samplePart(
  request: SamplingRequest,
  before: readonly number[],
  attempt: number,
  signal: AbortSignal,
): Promise<Part> {
  let isSilent = false;
  let version: number | null = request.policyVersion ?? null;
  // One controller, since a signal that is combined of several costs more than all else that is done here.
  const ending = new AbortController();
  const end = (): void => ending.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener('abort', end);
  const timer = setTimeout(() => {
    isSilent = true;
    ending.abort();
  }, limits.engineSilenceMs);
  let lastEventAt = performance.now();
  const ids: number[] = [];
  const logprobs: number[] = [];
  try {
    const generation = {
      ...generationOf(request, before, attempt),
      // An engine that says that it is paused is not silent.
      onHeld(isHeld: boolean): void {
        timer.refresh();
        lastEventAt = performance.now();
        request.onHeld(isHeld);
      },
      onVersion(served: number | null): void {
        version = served;
      },
    };
    let last: GenerateEvent | null = null;
    for await (const event of request.engine.generate(generation, ending.signal)) {
      timer.refresh();
      lastEventAt = performance.now();
      last = event;
      for (const id of event.tokenIds) ids.push(id);
      for (const logprob of event.logprobs) logprobs.push(logprob);
      if (event.tokenIds.length === 0) continue;
      request.onWaiting(false);
      request.onHeld(false);
      request.onIds(event.tokenIds);
    }
    return { kind: 'sampled', lastEventAt, ...checked(request.engine, ids, logprobs, last) };
  } catch (error) {
    if (signal.aborted) return { kind: 'cut', lastEventAt, ids, logprobs, versions: servedBy(version, ids.length) };
    const lost = { kind: 'lost', lastEventAt, tokens: ids.length } as const;
    if (isSilent) return { ...lost, failure: `no token in ${limits.engineSilenceMs} ms` };
    if (isTemporary(error)) return { ...lost, failure: error };
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
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

/** Derives the seed of a part. One that starts at a different token must not draw the same random numbers again. */
const seedOfPart = (seed: number, at: number): number => (at === 0 ? seed : deriveSeed(String(seed), String(at)));

/** The versions of a part that was cut: the one that was served at its start. The engine can only have changed to a newer one. */
const servedBy = (version: number | null, tokens: number): readonly VersionSpan[] =>
  version === null || tokens === 0 ? [] : [{ version, start: 0, end: tokens }];

/** Checks that the events form a whole; the engine's adapter has checked each one. */
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

/** Whether a failure is temporary: the engine is down, or took half an update and waits for the next publication. */
function isTemporary(error: unknown): boolean {
  return error instanceof TemperFailure && (error.type === 'EngineUnavailable' || error.type === 'EngineQuarantined');
}

const shift = ({ version, start, end }: VersionSpan, by: number): VersionSpan => ({
  version,
  start: start + by,
  end: end + by,
});

function engineUnavailable(url: string, awayMs: number, failures: number, cause: unknown): GatewayError {
  const what = `the engine ${url} was unavailable for ${awayMs} ms and failed ${failures} times during this turn`;
  return new GatewayError('engine-unavailable', `${what}: ${errorMessage(cause)}`, { cause });
}

/**
 * Derives the seed of a turn from that of its session and its key, which tells the samples of a conversation apart: the same after
 * a restart, and whatever the order of requests.
 */
export function deriveSeed(seed: string, key: string): number {
  return createHash('sha256').update(`${seed}:${key}`).digest().readUInt32LE() >>> 1;
}
