import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { PolicyError } from '../errors.ts';

/**
 * The architecture of a `temper-tiny` model, from its config.json. Unknown keys belong to tokenizers and tools, and are
 * ignored.
 */
export interface ModelConfig {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediateSize: number;
  readonly maxPositions: number;
  /** Seed of the initial weights, for a directory without weights. */
  readonly seed: number;
}

/** The largest supported architecture; beyond it, use a real trainer. */
const limits = { vocabulary: 65_536, width: 4096, layers: 64, positions: 8192 } as const;

const multipleOf4 = (limit: number) => z.int().positive().max(limit).multipleOf(4);

const schema = z.looseObject({
  model_type: z.literal('temper-tiny'),
  vocab_size: multipleOf4(limits.vocabulary),
  hidden_size: multipleOf4(limits.width),
  num_hidden_layers: z.int().positive().max(limits.layers),
  num_attention_heads: z.int().positive(),
  intermediate_size: multipleOf4(limits.width * 4),
  max_position_embeddings: z.int().min(2).max(limits.positions),
  seed: z.int().nonnegative().default(0),
});

export function readModelConfig(modelDir: string): ModelConfig {
  const path = join(modelDir, 'config.json');
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const message = `${path}: expected a readable JSON file; name a directory with the model's config.json`;
    throw new PolicyError('invalid-model-dir', message, { field: path }, { cause });
  }
  return parseModelConfig(parsed, path);
}

export function parseModelConfig(value: unknown, source = 'config.json'): ModelConfig {
  const result = schema.safeParse(value);
  if (!result.success) {
    throw new PolicyError('invalid-model-dir', `${source}: ${z.prettifyError(result.error)}`, { field: source });
  }
  const config = result.data;
  if (config.hidden_size % (4 * config.num_attention_heads) !== 0) {
    const got = `hidden_size ${config.hidden_size}, num_attention_heads ${config.num_attention_heads}`;
    const expected = 'hidden_size divisible by 4 x num_attention_heads';
    throw new PolicyError('invalid-model-dir', `${source}: expected ${expected}, got ${got}`, { expected, got });
  }
  return {
    vocabSize: config.vocab_size,
    hiddenSize: config.hidden_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    intermediateSize: config.intermediate_size,
    maxPositions: config.max_position_embeddings,
    seed: config.seed,
  };
}
