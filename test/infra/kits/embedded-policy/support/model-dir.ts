import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { SampleEvent, SampleRequest } from '../../../../../infra/kits/embedded-policy/sampler-core.ts';

/** A model that is small, so that tests are fast, with a context of two attention blocks. */
export const smallConfig = {
  model_type: 'temper-tiny',
  vocab_size: 32,
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  intermediate_size: 64,
  max_position_embeddings: 96,
  seed: 7,
};

export interface ModelDir {
  /** The directory of `base` and of the files that the test writes. */
  readonly root: string;
  readonly base: string;
}

/** Creates a model directory, which is removed after the test. */
export function makeModelDir(context: TestContext, config: object = smallConfig): ModelDir {
  const root = mkdtempSync(join(tmpdir(), 'policy-'));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  const base = join(root, 'base');
  mkdirSync(base);
  writeFileSync(join(base, 'config.json'), JSON.stringify(config));
  return { root, base };
}

export interface Sampled {
  readonly request: SampleRequest;
  readonly prompt: readonly (number | null)[] | undefined;
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly versions: readonly string[];
  readonly reason: string;
}

/** Reads a stream to its end. */
export async function collect(request: SampleRequest, events: AsyncIterable<SampleEvent>): Promise<Sampled> {
  const all: SampleEvent[] = [];
  for await (const event of events) all.push(event);
  return fold(request, all);
}

export function fold(request: SampleRequest, events: readonly SampleEvent[]): Sampled {
  const tokens = events.filter((event) => event.type === 'token');
  const last = events.at(-1);
  return {
    request,
    prompt: events.find((event) => event.type === 'prompt')?.logprobs,
    tokens: tokens.map((event) => event.tokenId),
    logprobs: tokens.map((event) => event.logprob),
    versions: tokens.map((event) => event.version),
    reason: last?.type === 'finish' ? last.reason : 'none',
  };
}
