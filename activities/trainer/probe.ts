import { randomUUID } from 'node:crypto';
import type { Engine } from '../../infra/engine/engine.ts';
import { promptOf } from '../../infra/engine/prompt.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** Token ids that exist in every vocabulary. */
const prompt: readonly number[] = [5, 6, 7, 8, 9, 10, 11, 12];
/**
 * The largest accepted gap. Two bfloat16 implementations differ by less; an engine with part of the weights, or with other
 * weights, differs by far more.
 */
const largestGap = 0.1;

/** The tokens that an engine sampled after the prompt, and the logprobs that it returned. */
interface Sampled {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
}

/**
 * Proves that engines serve a version: each samples a few tokens, as for an agent, and the trainer computes their logprobs.
 * Returns the largest gap in nats. Prompt logprobs would not do, because they take another path through an engine than
 * training data. Throws EngineUnavailable for another version, for logprobs of other weights, and if no token is sampled.
 */
export async function provenGap(
  engines: readonly Engine[],
  version: number,
  forward: (data: readonly Datum[]) => Promise<readonly (readonly number[])[]>,
  signal: AbortSignal,
): Promise<number> {
  const samples = await Promise.all(engines.map((engine) => sample(engine, version, signal)));
  const expected = await forward(samples.map(asDatum));
  return Math.max(0, ...engines.map(({ url }, index) => gapOf(url, version, samples[index], expected[index])));
}

async function sample(engine: Engine, version: number, signal: AbortSignal): Promise<Sampled> {
  const sampling = { maxTokens: 8, temperature: 1, topP: 1, topK: -1, stopTokenIds: [] };
  const tokenIds: number[] = [];
  const logprobs: number[] = [];
  for await (const event of engine.generate(
    { requestId: randomUUID(), prompt: promptOf(prompt), ...sampling },
    signal,
  )) {
    tokenIds.push(...event.tokenIds);
    logprobs.push(...event.logprobs);
    for (const span of event.versions ?? []) {
      if (span.version !== version) throw unproven(engine.url, version, `tokens of version ${span.version}`);
    }
  }
  if (tokenIds.length === 0) throw unproven(engine.url, version, 'no token');
  return { tokenIds, logprobs };
}

function asDatum({ tokenIds }: Sampled): Datum {
  const tokens = [...prompt, ...tokenIds];
  return { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: tokens.slice(1).map(() => 1) };
}

function gapOf(
  url: string,
  version: number,
  { logprobs }: Sampled = { tokenIds: [], logprobs: [] },
  expected: readonly number[] = [],
): number {
  const sampled = expected.slice(prompt.length - 1);
  const gap = Math.max(...logprobs.map((value, index) => Math.abs(value - (sampled[index] ?? Number.NaN))));
  if (gap <= largestGap) return gap;
  throw unproven(url, version, `a gap of ${gap}; it applied the weights only in part or not at all`);
}

function unproven(url: string, version: number, got: string): TemperFailure {
  return new TemperFailure(
    'EngineUnavailable',
    `engine ${url}: expected tokens of version ${version} with the trainer's logprobs, got ${got}`,
  );
}
