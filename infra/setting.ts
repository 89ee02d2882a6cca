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
  return z.string().regex(/\S/, { error: 'expected some text; unset the variable to have its default' });
}

/** A directory in a variable that other programs read, too, for which an empty one is unset. */
export function commonDirectory() {
  return z
    .string()
    .optional()
    .transform((value) => value || undefined);
}

/** The address of a server that speaks HTTP. */
export function address() {
  return z.url({ protocol: /^https?$/, error: 'expected an address that begins with http:// or https://' });
}

/** A number that `schema` reads from a text. Coercion alone makes 0 of an empty one. */
export function number<Schema extends z.ZodType<number, string>>(schema: Schema) {
  return text().pipe(schema);
}

export function wholeNumber(min: number, max: number) {
  const bounds = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
  const error = `expected a whole number ${bounds}`;
  return number(z.coerce.number<string>({ error }).int({ error }).min(min, { error }).max(max, { error }));
}

/** A share of a whole, which is not nothing. */
export function share() {
  const error = 'expected a number above 0 and at most 1';
  return number(z.coerce.number<string>({ error }).gt(0, { error }).max(1, { error }));
}

export function port(fallback: number) {
  return wholeNumber(1, 65_535).default(fallback);
}

/** Texts with commas between them. */
export function list() {
  return z
    .string()
    .default('')
    .transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    );
}
