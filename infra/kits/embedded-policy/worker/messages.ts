import { PolicyError, type PolicyErrorCode, type PolicyErrorDetails } from '../errors.ts';
import type { SampleEvent } from '../sampler-core.ts';

// Messages between the core and its threads.

export interface CallMessage {
  readonly kind: 'call';
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type ReplyMessage =
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly error: SentError };

/** Sampled tokens of several decode steps, packed; `before` and `after` are the rarer events of the same tickets. */
export interface EventsMessage {
  readonly kind: 'events';
  readonly before: readonly TicketEvent[];
  readonly version: string;
  readonly tickets: readonly number[];
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly after: readonly TicketEvent[];
}

export interface TicketEvent {
  readonly ticket: number;
  readonly event: SampleEvent;
}

/** An error as data: a PolicyError with its code, or any other error, which is a bug, with its stack for the log. */
export interface SentError {
  readonly code: PolicyErrorCode | undefined;
  readonly message: string;
  readonly details: PolicyErrorDetails;
  readonly stack: string | undefined;
}

export function sendError(error: unknown): SentError {
  if (error instanceof PolicyError) {
    return { code: error.code, message: error.message, details: error.details, stack: undefined };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { code: undefined, message, details: {}, stack };
}

export function receiveError({ code, message, details, stack }: SentError): Error {
  if (code !== undefined) return new PolicyError(code, message, details);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
