import { randomInt } from 'node:crypto';
import { PolicyError, refuse } from '../errors.ts';
import type { SampleRequest } from '../sampler-core.ts';

export interface CheckedRequest {
  readonly requestId: string;
  readonly tokenIds: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** The number of likeliest tokens to choose from; 0 turns the limit off. */
  readonly topK: number;
  readonly stopTokenIds: ReadonlySet<number>;
  readonly seed: number;
  readonly promptLogprobs: boolean;
}

export interface RequestLimits {
  readonly vocabSize: number;
  readonly contextLength: number;
}

/** Checks a sampling request and fills in its defaults. */
export function checkRequest(request: SampleRequest, limits: RequestLimits): CheckedRequest {
  const { requestId, tokenIds, maxTokens, temperature = 1, topP = 1, topK = -1, stopTokenIds = [] } = request;
  const { seed = randomInt(2 ** 32), promptLogprobs = false } = request;
  const check = (field: string, expected: string, value: unknown, holds: boolean): void => {
    if (!holds) throw refuse('invalid-request', field, expected, value);
  };
  check('requestId', 'a non-empty string', requestId, typeof requestId === 'string' && requestId !== '');
  check('tokenIds.length', 'at least 1', tokenIds.length, tokenIds.length >= 1);
  checkTokens('tokenIds', tokenIds, limits.vocabSize);
  checkTokens('stopTokenIds', stopTokenIds, limits.vocabSize);
  check('maxTokens', 'an integer, at least 1', maxTokens, Number.isInteger(maxTokens) && maxTokens >= 1);
  check('temperature', 'a finite number, at least 0', temperature, Number.isFinite(temperature) && temperature >= 0);
  check('topP', 'a number above 0, at most 1', topP, topP > 0 && topP <= 1);
  check('topK', 'an integer, at least -1', topK, Number.isInteger(topK) && topK >= -1);
  check('seed', 'an integer', seed, Number.isSafeInteger(seed));
  const sum = tokenIds.length + maxTokens;
  if (sum > limits.contextLength) {
    const expected = `at most ${limits.contextLength} tokens (the context)`;
    const got = `${tokenIds.length} prompt tokens + maxTokens ${maxTokens}`;
    const details = { field: 'tokenIds.length + maxTokens', expected, got };
    throw new PolicyError('context-length-exceeded', `context: expected ${expected}, got ${got}`, details);
  }
  return {
    requestId,
    tokenIds: Int32Array.from(tokenIds),
    maxTokens,
    temperature,
    topP,
    topK: Math.max(topK, 0),
    stopTokenIds: new Set(stopTokenIds),
    seed,
    promptLogprobs,
  };
}

function checkTokens(field: string, tokens: ArrayLike<number>, vocabSize: number): void {
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    if (token === undefined || !Number.isInteger(token) || token < 0 || token >= vocabSize) {
      throw refuse('invalid-request', `${field}[${i}]`, `a token id from 0 to ${vocabSize - 1}`, token);
    }
  }
}
