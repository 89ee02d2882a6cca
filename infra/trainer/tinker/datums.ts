import type { WireDatum, WireForwardBackward, WireTensor } from '../../kits/tinker-wire/index.ts';
import type { Datum, ForwardBackward, LossName } from '../trainer.ts';
import { refused } from './connection.ts';

// Servers accept invalid requests (SkyRL trains `ppo` without logprobs and reports nothing), so every datum is checked here,
// against what its loss needs.

const needs: Readonly<Record<LossName, readonly ('logprobs' | 'advantages')[]>> = {
  cross_entropy: [],
  importance_sampling: ['logprobs', 'advantages'],
  ppo: ['logprobs', 'advantages'],
  cispo: ['logprobs', 'advantages'],
};

const largestId = 2 ** 31 - 1;
/** The largest logprob accepted: a kernel's rounding may put one just above zero. */
const roundingAboveZero = 1e-5;

/** Returns the wire form of a request. Throws TrainerRefused with datum, field, and the expected and given values. */
export function wireRequest(request: ForwardBackward, reduction: 'sum' | 'datum-mean'): WireForwardBackward {
  if (request.data.length === 0) throw refused('data: expected at least one datum, got none');
  for (const [index, datum] of request.data.entries()) checkDatum(datum, request, `data[${index}]`);
  if (request.data.every((datum) => datum.weights.every((weight) => weight === 0))) {
    throw refused('data: expected at least one token with a weight, got none; drop the batch instead');
  }
  const datumsInStep = request.datumsInStep ?? request.data.length;
  return {
    modelId: request.modelId,
    sequence: request.sequence,
    data: request.data.map((datum) => wireDatum(datum, request.loss, reduction === 'sum' ? null : datumsInStep)),
    loss: request.loss,
    lossConfig: request.lossConfig ?? {},
    forwardOnly: request.forwardOnly ?? false,
  };
}

/**
 * Returns the wire form of a datum.
 *
 * A `datum-mean` server computes the sum over datums of (sum of w l / sum of w) / N, where N is the number of datums since
 * its last step. Multiplying a datum's advantages by N x (sum of its weights) restores the plain sum.
 */
function wireDatum(datum: Datum, loss: LossName, datumsInStep: number | null): WireDatum {
  const { tokens, targets, weights, logprobs, advantages, referenceLogprobs } = datum;
  const weight = weights.reduce((sum, value) => sum + value, 0);
  const scale = datumsInStep === null ? 1 : datumsInStep * weight;
  const inputs: Record<string, WireTensor> = {
    target_tokens: { dtype: 'int64', data: targets },
    weights: { dtype: 'float32', data: weights },
  };
  if (needs[loss].length > 0 && logprobs !== undefined && advantages !== undefined) {
    inputs.logprobs = { dtype: 'float32', data: logprobs };
    inputs.advantages = { dtype: 'float32', data: scale === 1 ? advantages : advantages.map((value) => value * scale) };
  }
  if (referenceLogprobs !== undefined) inputs.reference_logprobs = { dtype: 'float32', data: referenceLogprobs };
  return { tokens, inputs };
}

function checkDatum(datum: Datum, request: ForwardBackward, where: string): void {
  const { tokens, targets, weights } = datum;
  const length = tokens.length;
  if (length === 0) throw refused(`${where}.tokens: expected at least one token, got none`);
  const ids = { length, accepts: isTokenId, expected: 'token ids' };
  const logprobs = { length, accepts: isLogprob, expected: 'finite logprobs' };
  checkArray(tokens, { ...ids, where: `${where}.tokens` });
  checkArray(targets, { ...ids, where: `${where}.targets` });
  const shifted = targets.findIndex((target, index) => index + 1 < length && target !== tokens[index + 1]);
  if (shifted >= 0) {
    throw refused(
      `${where}.targets[${shifted}]: expected the next input ${tokens[shifted + 1]}, got ${targets[shifted]}; targets are the inputs shifted by one`,
    );
  }
  checkArray(weights, {
    where: `${where}.weights`,
    length,
    accepts: (value) => Number.isFinite(value) && value >= 0,
    expected: 'finite numbers >= 0',
  });
  for (const field of request.forwardOnly === true ? [] : needs[request.loss]) {
    const values = datum[field];
    if (values === undefined)
      throw refused(`${where}.${field}: expected ${length} numbers for ${request.loss}, got none`);
    const entries = field === 'logprobs' ? logprobs : { length, accepts: Number.isFinite, expected: 'finite numbers' };
    checkArray(values, { ...entries, where: `${where}.${field}` });
  }
  if ((request.lossConfig?.kl_coef ?? 0) > 0) {
    const values = datum.referenceLogprobs;
    if (values === undefined)
      throw refused(`${where}.referenceLogprobs: expected ${length} numbers for kl_coef, got none`);
    checkArray(values, { ...logprobs, where: `${where}.referenceLogprobs` });
  }
}

interface ArrayCheck {
  readonly where: string;
  readonly length: number;
  accepts(value: number): boolean;
  /** The accepted entries, in words. */
  readonly expected: string;
}

function checkArray(values: readonly number[], { where, length, accepts, expected }: ArrayCheck): void {
  if (values.length !== length) throw refused(`${where}: expected ${length} entries, got ${values.length}`);
  const index = values.findIndex((value) => !accepts(value));
  if (index >= 0) throw refused(`${where}[${index}]: expected ${expected}, got ${values[index]}`);
}

function isTokenId(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= largestId;
}

function isLogprob(value: number): boolean {
  return Number.isFinite(value) && value <= roundingAboveZero;
}
