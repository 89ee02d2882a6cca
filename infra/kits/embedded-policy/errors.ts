/**
 * The errors of the embedded policy. Every refusal is a `PolicyError` with a code of a closed union, so that a server can
 * answer it by a table; `field`, `expected` and `got` are set where an input was at fault. A policy error never leaves
 * weights, moments or accumulated gradients changed.
 */
export const policyErrorCodes = [
  /** a sampling request is malformed */
  'invalid-request',
  /** prompt + maxTokens do not fit the context; `expected` is the context length, `got` the sum */
  'context-length-exceeded',
  /** a request id that is still running or waiting */
  'duplicate-request',
  /** a datum, loss name, loss setting or optimizer parameter is malformed */
  'invalid-datum',
  'unknown-loss',
  'invalid-loss-config',
  'invalid-adam-params',
  'unknown-model',
  'model-exists',
  /** a loss, gradient or updated weight was NaN or infinite: the call had no effect */
  'non-finite',
  /** config.json or a safetensors file is missing, malformed or of another architecture */
  'invalid-model-dir',
  'invalid-checkpoint',
  /** save() to a directory that exists */
  'checkpoint-exists',
  /** the core was closed, or its worker thread died */
  'closed',
  'worker-crashed',
] as const;

export type PolicyErrorCode = (typeof policyErrorCodes)[number];

export interface PolicyErrorDetails {
  readonly field?: string;
  readonly expected?: string;
  readonly got?: string;
}

export class PolicyError extends Error {
  readonly code: PolicyErrorCode;
  readonly details: PolicyErrorDetails;

  constructor(code: PolicyErrorCode, message: string, details: PolicyErrorDetails = {}, options: ErrorOptions = {}) {
    super(message, options);
    this.name = 'PolicyError';
    this.code = code;
    this.details = details;
  }
}

/** Builds the usual message from what was expected and what came. */
export function refuse(code: PolicyErrorCode, field: string, expected: string, got: unknown): PolicyError {
  const shown = typeof got === 'string' ? got : show(got);
  return new PolicyError(code, `${field}: expected ${expected}, got ${shown}`, { field, expected, got: shown });
}

function show(value: unknown): string {
  if (typeof value === 'number') return String(value); // JSON would turn NaN into null
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
