import type { Datum, ForwardBackward, ForwardBackwardResult, Trainer } from './trainer.ts';

/**
 * Returns the number of datums of each forward_backward of a step: one takes all unless they exceed `maxTokens`, counted with
 * padding to the longest datum of a request. Datums stay in order; one that is longer than the limit is sent alone.
 */
export function requestSizes(data: readonly Datum[], maxTokens: number): readonly number[] {
  const sizes: number[] = [];
  let size = 0;
  let longest = 0;
  for (const { tokens } of data) {
    const padded = Math.max(longest, tokens.length);
    if (size > 0 && padded * (size + 1) > maxTokens) {
      sizes.push(size);
      size = 0;
      longest = 0;
    }
    size += 1;
    longest = Math.max(longest, tokens.length);
  }
  return size === 0 ? sizes : [...sizes, size];
}

/**
 * Sends one forward_backward after the other, under consecutive sequence ids; gradients add up until the optimizer's step.
 * They are never sent concurrently, because a server (SkyRL) may merge requests that wait.
 */
export async function forwardBackwardInParts(
  trainer: Pick<Trainer, 'forwardBackward'>,
  request: ForwardBackward,
  sizes: readonly number[],
  signal: AbortSignal,
): Promise<ForwardBackwardResult> {
  const parts: Part[] = [];
  let from = 0;
  for (const [index, size] of sizes.entries()) {
    const data = request.data.slice(from, from + size);
    const part = { ...request, data, datumsInStep: request.data.length, sequence: request.sequence + index };
    parts.push({ size, result: await trainer.forwardBackward(part, signal) });
    from += size;
  }
  return { logprobs: parts.flatMap(({ result }) => result.logprobs), metrics: mergeMetrics(parts) };
}

interface Part {
  readonly size: number;
  readonly result: ForwardBackwardResult;
}

/** Merges metrics by the suffix of their names, as the Tinker API defines them. Any other metric is averaged over the datums. */
function mergeMetrics(parts: readonly Part[]): Record<string, number> {
  const merged: Record<string, number> = {};
  for (const name of new Set(parts.flatMap(({ result }) => Object.keys(result.metrics)))) {
    const known = parts.flatMap(({ size, result }) => {
      const value = result.metrics[name];
      return value === undefined ? [] : [{ size, value }];
    });
    merged[name] = mergeValues(name, known);
  }
  return merged;
}

function mergeValues(name: string, known: readonly { readonly size: number; readonly value: number }[]): number {
  const sumOf = (of: (one: (typeof known)[number]) => number): number => known.reduce((sum, one) => sum + of(one), 0);
  if (name.endsWith(':sum')) return sumOf(({ value }) => value);
  if (name.endsWith(':max')) return Math.max(...known.map(({ value }) => value));
  if (name.endsWith(':min')) return Math.min(...known.map(({ value }) => value));
  return sumOf(({ size, value }) => size * value) / sumOf(({ size }) => size);
}
