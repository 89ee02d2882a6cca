import { type FailureType, TemperFailure } from '../../workflows/contracts/failures.ts';
import { TemplateRejection } from '../kits/chat-tokens/index.ts';

/** The reasons for which a request of an agent fails, with their HTTP status. Each dialect words them in its own way. */
export const errorStatus = {
  unauthorized: 401,
  'unknown-session': 401,
  // Not 409, which the SDKs of OpenAI and Anthropic retry.
  'session-closed': 410,
  submitted: 410,
  'not-found': 404,
  'wrong-method': 405,
  malformed: 400,
  unsupported: 400,
  'too-large': 413,
  'context-overflow': 400,
  // 429 would fit better, but OpenCode retries it until its deadline.
  'turn-limit': 403,
  'token-budget': 403,
  'too-many-turns': 429,
  'engine-unavailable': 503,
  // Not 503: a retry would get the same answer.
  'engine-invalid': 502,
  'gateway-closing': 503,
  'journal-unavailable': 503,
  internal: 500,
} as const;
export type GatewayErrorKind = keyof typeof errorStatus;

/** The kinds for which a retry by the client may succeed. */
const retryable: ReadonlySet<GatewayErrorKind> = new Set([
  'too-many-turns',
  'engine-unavailable',
  'gateway-closing',
  'journal-unavailable',
  'internal',
]);

/** The kinds that the relay retries on the agent's behalf. Not engine outages: the gateway has already waited those out. */
const retriedByRelay: ReadonlySet<GatewayErrorKind> = new Set(['gateway-closing', 'journal-unavailable']);

/** A failed request, as an agent sees it. */
export class GatewayError extends Error {
  readonly kind: GatewayErrorKind;

  constructor(kind: GatewayErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'GatewayError';
    this.kind = kind;
  }

  get status(): number {
    return errorStatus[this.kind];
  }

  get retryable(): boolean {
    return retryable.has(this.kind);
  }

  get retriedByRelay(): boolean {
    return retriedByRelay.has(this.kind);
  }
}

/** A prompt longer than the model's context. Each dialect words the two numbers so that its agents start to compact. */
export class ContextOverflow extends GatewayError {
  readonly promptTokens: number;
  readonly contextLength: number;

  constructor(promptTokens: number, contextLength: number) {
    const limit = `this model's maximum context length is ${contextLength} tokens`;
    super('context-overflow', `${limit}, but the messages have ${promptTokens} tokens`);
    this.promptTokens = promptTokens;
    this.contextLength = contextLength;
  }
}

/** Maps any failure to what an agent may see: never a message that names files or other sessions. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof TemplateRejection) return new GatewayError('malformed', error.message);
  const kind = error instanceof TemperFailure ? (kindOfFailure[error.type] ?? 'internal') : 'internal';
  const message = messages[kind] ?? 'the gateway failed on this request; try again';
  return new GatewayError(kind, message, { cause: error });
}

const kindOfFailure: Partial<Record<FailureType, GatewayErrorKind>> = {
  InvalidInput: 'unknown-session',
  GatewayUnavailable: 'gateway-closing',
  HostFenced: 'gateway-closing',
  EngineUnavailable: 'engine-unavailable',
  EngineInvalid: 'engine-invalid',
  EngineQuarantined: 'engine-unavailable',
  VersionNotServed: 'engine-unavailable',
  DiskFull: 'journal-unavailable',
  StoreUnavailable: 'journal-unavailable',
};

const messages: Partial<Record<GatewayErrorKind, string>> = {
  'unknown-session': 'there is no such session',
  'engine-unavailable': 'the engine failed on this request; try again',
  'engine-invalid': 'the engine rejected this request, or its answer was invalid',
  'journal-unavailable': 'the gateway cannot record this turn; try again',
};
