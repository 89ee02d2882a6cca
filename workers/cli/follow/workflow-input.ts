import { readFile } from 'node:fs/promises';
import type { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { describeIssue } from '../../../workflows/contracts/input.ts';
import type { SandboxChoice } from '../../../workflows/contracts/sandbox-kinds.ts';
import type { StackClient } from '../stack/stack-client.ts';
import { UsageError } from '../text/errors.ts';

/** Drops the fields without a value, so that an option that was not given does not hide the input file's field. */
export function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Reads a workflow's input from a JSON file. Throws a UsageError when the file holds no JSON object. */
export async function readInput(path: string, option = '--input'): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${option}: cannot read ${path} (${error.code}); expected a JSON file`);
  });
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch (error) {
    throw new UsageError(`${option}: ${path} is not valid JSON: ${errorMessage(error)}`);
  }
  throw new UsageError(
    `${option}: expected a JSON object in ${path}${option === '--input' ? ', for example {"steps": 30}' : ''}`,
  );
}

/**
 * Checks a workflow's input before anything starts, and returns it with its defaults. Throws a UsageError that names
 * every invalid field.
 */
export function requireValid<Schema extends z.ZodType>(
  what: string,
  schema: Schema,
  request: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(request);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, request));
  throw new UsageError(`invalid input of the ${what}: ${problems.join('; ')}`);
}

/** The fields of the input of a run or a sweep that say which tasks it is for, and where they run. */
interface TasksAndSandbox {
  readonly tasks?: string | undefined;
  readonly settings?: { readonly sandbox?: SandboxChoice | undefined } | undefined;
}

/**
 * Names the set of tasks so that workers can read it. Throws a UsageError for a wrong one, before the workflow starts, and
 * the signal's reason if that aborts while tasks are packed.
 */
export async function withTaskSet<Request extends TasksAndSandbox>(
  request: Request,
  stack: StackClient,
  signal?: AbortSignal,
): Promise<Request> {
  const { tasks, settings } = request;
  if (tasks === undefined) return request;
  const { taskSetFor } = await import('../stack/task-set.ts');
  return { ...request, tasks: await taskSetFor({ tasks, sandbox: settings?.sandbox }, stack, signal) };
}
