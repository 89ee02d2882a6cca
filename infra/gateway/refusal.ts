import { type FailureType, TemperFailure } from '../../workflows/contracts/failures.ts';
import { TemplateRejection } from '../kits/chat-tokens/index.ts';

/** Why a request of an agent is not served: a closed set, which each dialect words in its own way. */
export const refusalStatus = {
  unauthorized: 401,
  'unknown-session': 401,
  // Not 409, which OpenAI's and Anthropic's SDKs try again.
  'session-closed': 410,
  'not-found': 404,
  'wrong-method': 405,
  malformed: 400,
  unsupported: 400,
  'too-large': 413,
  'context-overflow': 400,
  // 429 would say it better, but OpenCode tries that again until its deadline.
  'turn-limit': 403,
  'token-budget': 403,
  'too-many-turns': 429,
  'engine-unavailable': 503,
  // Not 503: the same request would get the same answer.
  'engine-invalid': 502,
  'gateway-closing': 503,
  'journal-unavailable': 503,
  internal: 500,
} as const;
export type RefusalKind = keyof typeof refusalStatus;

/** Only these may succeed when the client tries again. */
const retryable: ReadonlySet<RefusalKind> = new Set([
  'too-many-turns',
  'engine-unavailable',
  'gateway-closing',
  'journal-unavailable',
  'internal',
]);

/** These the relay hides from the agent for a while. An engine that is away is none: the gateway itself has waited for it. */
const passing: ReadonlySet<RefusalKind> = new Set(['gateway-closing', 'journal-unavailable']);

export class Refusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Refusal';
    this.kind = kind;
  }

  get status(): number {
    return refusalStatus[this.kind];
  }

  get retryable(): boolean {
    return retryable.has(this.kind);
  }

  get passes(): boolean {
    return passing.has(this.kind);
  }
}

/** With its numbers, since each dialect has words of its own for it, by which agents know that they have to compact. */
export class ContextOverflow extends Refusal {
  readonly promptTokens: number;
  readonly contextLength: number;

  constructor(promptTokens: number, contextLength: number) {
    const most = `this model's maximum context length is ${contextLength} tokens`;
    super('context-overflow', `${most}, but the messages have ${promptTokens} tokens`);
    this.promptTokens = promptTokens;
    this.contextLength = contextLength;
  }
}

/** What an agent is told of a failure: never a message that names files or other sessions. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof TemplateRejection) return new Refusal('malformed', error.message);
  const kind = error instanceof TemperFailure ? (byFailure[error.type] ?? 'internal') : 'internal';
  return new Refusal(kind, messages[kind] ?? 'the gateway failed on this request; try again', { cause: error });
}

const byFailure: Partial<Record<FailureType, RefusalKind>> = {
  InvalidInput: 'unknown-session',
  GatewayUnavailable: 'gateway-closing',
  EngineUnavailable: 'engine-unavailable',
  EngineInvalid: 'engine-invalid',
  EngineQuarantined: 'engine-unavailable',
  VersionNotServed: 'engine-unavailable',
  DiskFull: 'journal-unavailable',
  StoreUnavailable: 'journal-unavailable',
};

const messages: Partial<Record<RefusalKind, string>> = {
  'unknown-session': 'there is no such session',
  'engine-unavailable': 'the engine failed on this request; try again',
  'engine-invalid': 'the engine refused this request, or answered what can not be used',
  'journal-unavailable': 'the gateway can not record this turn; try again',
};
