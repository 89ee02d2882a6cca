import { ApplicationFailure } from '@temporalio/common';
import { z } from 'zod';

/**
 * Parses a workflow's input. An invalid one fails the workflow at once, before anything starts, with a message that names
 * each field, what was expected and what was given.
 */
export function parseInput<Schema extends z.ZodType>(
  workflow: string,
  schema: Schema,
  input: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(input ?? {});
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, input));
  throw ApplicationFailure.nonRetryable(`${workflow}: ${problems.join('; ')}`, 'InvalidInput');
}

/** The server takes ids of 255 characters, and those of groups, rollouts, windows and steps add up to 45 to that of their owner. */
const mostIdCharacters = 200;

/** Refuses the id of a workflow that leaves no room for the ids of its children. The server would let it wait for them for ever. */
export function requireShortId(workflow: string, workflowId: string): void {
  if (workflowId.length <= mostIdCharacters) return;
  const expected = `expected at most ${mostIdCharacters} characters, since the ids of its children begin with it`;
  throw ApplicationFailure.nonRetryable(
    `${workflow}: workflow id: ${expected}, got ${workflowId.length}: ${workflowId.slice(0, 40)}…; choose a shorter one`,
    'InvalidInput',
  );
}

/** Describes one problem in one line: `rolloutsPerGroup: expected a number, got "eight"`. */
export function describeIssue(issue: z.core.$ZodIssue, input: unknown): string {
  const field = issue.path.length === 0 ? 'input' : issue.path.join('.');
  if (issue.code === 'unrecognized_keys') return `${field}: unknown field ${issue.keys.join(', ')}`;
  const got = JSON.stringify(valueAt(input, issue.path)) ?? 'nothing';
  return `${field}: ${issue.message}, got ${got.length > 120 ? `${got.slice(0, 120)}…` : got}`;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}

/** A number within bounds, whose error message names them. */
export function number(min: number, max: number, unit = ''): z.ZodNumber {
  const message = `expected a number from ${min} to ${max}${unit && ` ${unit}`}`;
  return z.number({ error: message }).min(min, { error: message }).max(max, { error: message });
}

/** An integer within bounds, whose error message names them. */
export function integer(min: number, max: number, unit = ''): z.ZodNumber {
  const message = `expected a whole number from ${min} to ${max}${unit && ` ${unit}`}`;
  return z.number({ error: message }).int({ error: message }).min(min, { error: message }).max(max, { error: message });
}

/** One of several words, whose error message lists them. */
export function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z.enum(values, { error: `expected one of ${values.join(', ')}` });
}

/** A text of 1 to 400 characters. `what` completes the error message "expected …". */
export function text(what: string): z.ZodString {
  const message = `expected ${what}`;
  return z
    .string({ error: message })
    .min(1, { error: message })
    .max(400, { error: `${message} of at most 400 characters` });
}

/** The number of a policy version: 0 for the weights that a run begins with, then one more with each step. */
export const versionNumber = integer(0, 1_000_000_000);
