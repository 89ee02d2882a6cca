import { z } from 'zod';

/** Wrong usage: exit code 2. */
export class UsageError extends Error {}

/** The command did what it was asked, and the answer is no: exit code 1, with nothing more to print than `message`. */
export class Unsuccessful extends Error {}

/** Ended by Ctrl-C: exit code 130, as shells expect it. */
export class Interrupted extends Error {}

export const exitCodes = { failure: 1, usage: 2, interrupted: 130 } as const;

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage;
  return error instanceof Interrupted ? exitCodes.interrupted : exitCodes.failure;
}

/** What people read: the message and what caused it, without stack traces unless they are asked for. */
export function describeError(error: unknown, withStack: boolean): string {
  if (withStack && error instanceof Error) return error.stack ?? error.message;
  if (error instanceof z.ZodError) return z.prettifyError(error);
  if (error instanceof AggregateError) return error.errors.map((one) => describeError(one, false)).join('\n');
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause.message : '';
  return cause === '' || error.message.includes(cause) ? error.message : `${error.message}\n  because: ${cause}`;
}
