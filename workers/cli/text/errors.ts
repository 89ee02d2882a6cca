import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

/** Wrong usage: exit code 2. */
export class UsageError extends Error {}

/** The command did its work, and the answer is negative: exit code 1, and nothing is printed but the message. */
export class Unsuccessful extends Error {}

/** Ended by Ctrl-C: exit code 130, as shells expect. */
export class Interrupted extends Error {}

export const exitCodes = { failure: 1, usage: 2, interrupted: 130 } as const;

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage;
  return error instanceof Interrupted ? exitCodes.interrupted : exitCodes.failure;
}

/** Returns the Interrupted behind an aborted wait, and any other error unchanged. */
export function interruptOr(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Interrupted ? error.cause : error;
}

/** Runs `read` and turns its errors into wrong usage, named by the option if there is one. */
export function orUsageError<Value>(read: () => Value, option?: string): Value {
  try {
    return read();
  } catch (error) {
    throw usageError(error, option);
  }
}

/** Turns a failure of what the user named (tasks, a pool, a reward) into wrong usage; returns any other error unchanged. */
export function asUsageError(error: unknown, option?: string): unknown {
  return error instanceof TemperFailure ? usageError(error, option) : error;
}

function usageError(error: unknown, option?: string): UsageError {
  const message = errorMessage(error);
  return new UsageError(option === undefined ? message : `${option}: ${message}`, { cause: error });
}

/** Describes an error for a user: its message and its cause, with a stack trace only on request. */
export function describeError(error: unknown, withStack: boolean): string {
  if (withStack && error instanceof Error) return error.stack ?? error.message;
  if (error instanceof z.ZodError) return z.prettifyError(error);
  if (error instanceof AggregateError) return error.errors.map((one) => describeError(one, false)).join('\n');
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause.message : '';
  const found = cause === '' || error.message.includes(cause) ? error.message : `${error.message}\n  because: ${cause}`;
  return lacksSearchAttribute(error) || lacksSearchAttribute(error.cause) ? `${found}\n  ${toRegister}` : found;
}

const toRegister =
  "the Temporal namespace lacks temper's search attributes, or those of this version; run `temper doctor --register` once";
/** The gRPC status INVALID_ARGUMENT. */
const invalidArgument = 3;

/** Whether the Temporal server refused a call because it does not know a search attribute. */
const lacksSearchAttribute = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === invalidArgument &&
  /search attribute/i.test(error.message);
