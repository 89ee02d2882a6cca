import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { FinishReason, VersionSpan } from '../../workflows/contracts/trace.ts';

// Only ids with an equal number of finite logprobs may be trained on. Anything else fails here; it never becomes a zero.

/** The value that vLLM sends for NaN and for a token that is missing from its table. */
const invalidLogprob = -9999;

export function checkedLogprobs(
  ids: readonly number[],
  logprobs: readonly (number | null | undefined)[] | null | undefined,
  where: string,
): readonly number[] {
  if (logprobs === null || logprobs === undefined || logprobs.length !== ids.length) {
    throw invalid(`${where}: expected ${ids.length} logprobs, got ${logprobs?.length ?? 'none'}`);
  }
  return logprobs.map((value, index) => {
    if (typeof value !== 'number' || !Number.isFinite(value) || value <= invalidLogprob || value > 1e-6) {
      throw invalid(`${where}: expected a finite logprob for token ${index} (id ${ids[index]}), got ${value}`);
    }
    return value;
  });
}

/** Returns the spans if they cover exactly the sampled tokens, in order and without a gap. */
export function checkedSpans(spans: readonly VersionSpan[], tokens: number, where: string): readonly VersionSpan[] {
  let position = 0;
  for (const span of spans) {
    if (span.start !== position || span.end <= span.start) {
      throw invalid(`${where}: expected a version span from token ${position}, got [${span.start}, ${span.end})`);
    }
    position = span.end;
  }
  if (position !== tokens) throw invalid(`${where}: expected version spans over ${tokens} tokens, got ${position}`);
  return spans;
}

export function finishReasonOf(reported: string, where: string): FinishReason {
  if (reported === 'stop' || reported === 'length' || reported === 'abort') return reported;
  throw invalid(`${where}: expected finish_reason stop, length or abort, got "${reported}"`);
}

export function invalid(message: string, options?: ErrorOptions): TemperFailure {
  return new TemperFailure('EngineInvalid', message, options);
}

export function unavailable(message: string, options?: ErrorOptions): TemperFailure {
  return new TemperFailure('EngineUnavailable', message, options);
}
