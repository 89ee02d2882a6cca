import { z } from 'zod';

// The parts of which the table of environment variables is made.

/** Attaches what the settings reference says; a default that the schema does not hold is given as text. */
export function setting<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  derivedDefault?: string,
): Schema {
  return schema.meta({ description, derivedDefault });
}

/** A text that is not empty. */
export function text() {
  return z.string().min(1, { error: 'expected some text; unset the variable to have its default' });
}

export function wholeNumber(min: number, max: number) {
  const bounds = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
  const error = `expected a whole number ${bounds}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
}

export function port(fallback: number) {
  return wholeNumber(1, 65_535).default(fallback);
}

export function list() {
  return z
    .string()
    .default('')
    .transform((value) => value.split(',').filter((item) => item !== ''));
}
