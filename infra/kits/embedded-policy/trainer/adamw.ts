import { PolicyError, refuse } from '../errors.ts';
import type { AdamParams } from '../trainer-core.ts';

/**
 * AdamW with bias correction and decoupled weight decay:
 *   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *   w = w - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w)
 * Source: Loshchilov and Hutter 2017, arXiv 1711.05101, algorithm 2. The gradient is first scaled down to gradClipNorm if its
 * 2-norm is above it. Arithmetic is float64 per element, rounded when stored.
 */

export interface AdamState {
  readonly weights: Float32Array;
  readonly moment1: Float32Array;
  readonly moment2: Float32Array;
}

export interface AdamUpdate extends AdamState {
  readonly gradientNorm: number;
  readonly updateNorm: number;
}

export function checkAdamParams(params: AdamParams): void {
  const check = (field: keyof AdamParams, expected: string, holds: (value: number) => boolean): void => {
    const value: unknown = params[field];
    if (typeof value !== 'number' || !holds(value)) throw refuse('invalid-adam-params', field, expected, value);
  };
  const atLeast0 = (value: number): boolean => Number.isFinite(value) && value >= 0;
  check('learningRate', 'a finite number, at least 0', atLeast0);
  check('beta1', 'a number from 0 to below 1', (value) => value >= 0 && value < 1);
  check('beta2', 'a number from 0 to below 1', (value) => value >= 0 && value < 1);
  check('eps', 'a finite number above 0', (value) => Number.isFinite(value) && value > 0);
  check('weightDecay', 'a finite number, at least 0', atLeast0);
  check('gradClipNorm', 'a finite number, at least 0 (0 = off)', atLeast0);
}

/** Makes step number `step` (from 1). Returns new arrays; throws `non-finite` rather than return a NaN or infinity. */
export function adamStep(state: AdamState, gradient: Float32Array, params: AdamParams, step: number): AdamUpdate {
  const gradientNorm = norm(gradient);
  if (!Number.isFinite(gradientNorm)) throw nonFinite('gradient', gradientNorm);
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = params;
  const scale = gradClipNorm > 0 && gradientNorm > gradClipNorm ? gradClipNorm / gradientNorm : 1;
  const [correction1, correction2] = [1 - beta1 ** step, 1 - beta2 ** step];
  const [weights, moment1, moment2] = [state.weights.slice(), state.moment1.slice(), state.moment2.slice()];
  let squares = 0;
  let check = 0; // becomes NaN if any weight or moment is not finite
  for (let i = 0; i < weights.length; i++) {
    const g = (gradient[i] as number) * scale;
    const m = beta1 * (moment1[i] as number) + (1 - beta1) * g;
    const v = beta2 * (moment2[i] as number) + (1 - beta2) * g * g;
    const weight = weights[i] as number;
    const change = learningRate * (m / correction1 / (Math.sqrt(v / correction2) + eps) + weightDecay * weight);
    moment1[i] = m;
    moment2[i] = v;
    weights[i] = weight - change;
    squares += change * change;
    check += 0 * ((weights[i] as number) + (moment1[i] as number) + (moment2[i] as number));
  }
  if (Number.isNaN(check)) throw nonFinite('weights after the step', check);
  return { weights, moment1, moment2, gradientNorm, updateNorm: Math.sqrt(squares) };
}

export function norm(values: Float32Array): number {
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i] as number) ** 2;
  return Math.sqrt(squares);
}

function nonFinite(what: string, got: number): PolicyError {
  const message = `optimStep: expected a finite ${what}, got ${got}; the weights are unchanged and the gradient is dropped`;
  return new PolicyError('non-finite', message, { field: what, got: String(got) });
}
