/** The codes of `PolicyError`: a closed union, so that a server can map each to a reply. */
const policyErrorCodes = [
  /** The sampling request is malformed. */
  'invalid-request',
  /** Prompt and maxTokens exceed the context; `expected` is the context length, `got` the sum. */
  'context-length-exceeded',
  /** The request id is still running or waiting. */
  'duplicate-request',
  /** A datum, loss name, loss setting or optimizer parameter is malformed. */
  'invalid-datum',
  'unknown-loss',
  'invalid-loss-config',
  'invalid-adam-params',
  'unknown-model',
  'model-exists',
  /** A loss, gradient or updated weight was NaN or infinite; the call had no effect. */
  'non-finite',
  /** config.json or a safetensors file is missing, malformed or of another architecture. */
  'invalid-model-dir',
  'invalid-checkpoint',
  /** The directory of save() exists. */
  'checkpoint-exists',
  /** The core was closed, or its worker thread died. */
  'closed',
  'worker-crashed',
] as const;

export type PolicyErrorCode = (typeof policyErrorCodes)[number];

export interface PolicyErrorDetails {
  readonly field?: string;
  readonly expected?: string;
  readonly got?: string;
}

/**
 * The error of every refused request. `details` name the field, the expected and the given value if an input is to blame.
 * Weights, moments and accumulated gradients are unchanged.
 */
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

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Builds an error whose message names the field, the expected and the given value. */
export function refuse(code: PolicyErrorCode, field: string, expected: string, got: unknown): PolicyError {
  const shown = typeof got === 'string' ? got : show(got);
  return new PolicyError(code, `${field}: expected ${expected}, got ${shown}`, { field, expected, got: shown });
}

function show(value: unknown): string {
  if (typeof value === 'number') return String(value); // JSON would turn NaN into null
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
