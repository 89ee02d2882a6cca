import { createHash } from 'node:crypto';
import { refuse } from '../errors.ts';
import type { Loss } from '../losses/loss.ts';
import type { Datum, LossConfig } from '../trainer-core.ts';

export interface CheckedDatum {
  readonly inputTokens: Int32Array;
  readonly targetTokens: Int32Array;
  readonly weights: Float32Array;
  readonly logprobs: Float32Array | undefined;
  readonly advantages: Float32Array | undefined;
  readonly referenceLogprobs: Float32Array | undefined;
}

export interface DatumLimits {
  readonly vocabSize: number;
  readonly contextLength: number;
}

/** Checks datums and turns them into typed arrays, so that no later code meets an invalid number. */
export function checkDatums(
  datums: readonly Datum[],
  loss: Loss,
  settings: Required<LossConfig>,
  limits: DatumLimits,
): CheckedDatum[] {
  if (datums.length === 0) throw refuse('invalid-datum', 'datums', 'at least one datum', 'none');
  return datums.map((datum, index) => checkDatum(datum, `datums[${index}]`, { loss, settings, limits }));
}

interface DatumRequirements {
  readonly loss: Loss;
  readonly settings: Required<LossConfig>;
  readonly limits: DatumLimits;
}

function checkDatum(datum: Datum, field: string, { loss, settings, limits }: DatumRequirements): CheckedDatum {
  const length = datum.inputTokens.length;
  if (length < 1 || length > limits.contextLength) {
    throw refuse('invalid-datum', `${field}.inputTokens.length`, `1 to ${limits.contextLength} (the context)`, length);
  }
  const numbers = (name: 'weights' | 'logprobs' | 'advantages' | 'referenceLogprobs', reason: string | undefined) => {
    const values = datum[name];
    if (values === undefined && reason !== undefined) {
      throw refuse('invalid-datum', `${field}.${name}`, `${length} numbers, since ${reason}`, 'none');
    }
    return values === undefined ? undefined : checkNumbers(values, length, `${field}.${name}`);
  };
  const neededBy = (name: 'weights' | 'logprobs' | 'advantages') =>
    loss.needs.includes(name) ? `${loss.name} needs them` : undefined;
  const hasKl = settings.kl_coef > 0 ? 'kl_coef is above 0' : undefined;
  return {
    inputTokens: checkTokens(datum.inputTokens, length, `${field}.inputTokens`, limits.vocabSize),
    targetTokens: checkTokens(datum.targetTokens, length, `${field}.targetTokens`, limits.vocabSize),
    weights: numbers('weights', neededBy('weights') ?? hasKl) ?? new Float32Array(length).fill(1),
    logprobs: numbers('logprobs', neededBy('logprobs')),
    advantages: numbers('advantages', neededBy('advantages')),
    referenceLogprobs: numbers('referenceLogprobs', hasKl),
  };
}

function checkTokens(values: ArrayLike<number>, length: number, field: string, vocabSize: number): Int32Array {
  if (values.length !== length)
    throw refuse('invalid-datum', `${field}.length`, `${length}, as inputTokens`, values.length);
  for (let i = 0; i < length; i++) {
    const token = values[i];
    if (token === undefined || !Number.isInteger(token) || token < 0 || token >= vocabSize) {
      throw refuse('invalid-datum', `${field}[${i}]`, `a token id from 0 to ${vocabSize - 1}`, token);
    }
  }
  return Int32Array.from(values);
}

function checkNumbers(values: ArrayLike<number>, length: number, field: string): Float32Array {
  if (values.length !== length)
    throw refuse('invalid-datum', `${field}.length`, `${length}, as inputTokens`, values.length);
  const checked = Float32Array.from(values);
  for (let i = 0; i < length; i++) {
    if (!Number.isFinite(checked[i])) throw refuse('invalid-datum', `${field}[${i}]`, 'a finite float32', values[i]);
  }
  return checked;
}

/** Returns the SHA-256 (hex) over loss, settings and every array by name: equal for equal input, in whatever container. */
export function digestOf(lossName: string, settings: Required<LossConfig>, datums: readonly CheckedDatum[]): string {
  const hash = createHash('sha256');
  hash.update(JSON.stringify([lossName, Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1))]));
  for (const datum of datums) {
    for (const [name, values] of Object.entries(datum) as [string, Int32Array | Float32Array | undefined][]) {
      hash.update(`\n${name} ${values?.length ?? 'none'}\n`);
      if (values !== undefined) hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
  }
  return hash.digest('hex');
}
