import { z } from 'zod';
import { type FailureType, TemperFailure } from '../../../workflows/contracts/failures.ts';
import { describeIssue } from '../../../workflows/contracts/input.ts';

/** The location of a row in its file. */
export interface RowLocation {
  /** The number of the row, counted from 1, for messages. */
  readonly number: number;
  /** The value by which the file finds the row again: a byte offset or an index. */
  readonly position: number;
}

export interface Row extends RowLocation {
  readonly file: string;
  /** Returns the value of the row. Throws TemperFailure MalformedTask when it cannot be read. */
  read(): unknown;
}

/** A file of rows that is read in order or row by row, and never as a whole where its format allows that. */
export interface RowFile {
  rows(): AsyncIterable<Row>;
  at(location: RowLocation): Promise<Row>;
}

/** Parses a row by a schema. Throws TemperFailure MalformedTask that names file, row and field. */
export function parseRow<Schema extends z.ZodType>(schema: Schema, row: Row): z.output<Schema> {
  const value = row.read();
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, value));
  throw rowFailure('MalformedTask', row, problems.join('; '));
}

export const rowFailure = (type: FailureType, { file, number }: Pick<Row, 'file' | 'number'>, text: string) =>
  new TemperFailure(type, `${file}: row ${number}: ${text}`);

/** Accepts a value, or the same value as JSON in a string, as Parquet files often hold lists and objects. */
export const maybeJson = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (typeof value === 'string' ? parsedOrText(value) : value), schema);

function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const listOf = (what: string) =>
  z.array(z.string({ error: `expected ${what}` }), { error: `expected a list of ${what}s` });

/** Accepts a list of texts, or such a list as JSON in a string. */
export const textList = (what: string) => maybeJson(listOf(what));

/** Accepts what `textList` accepts, one text as a list of one, and a missing value as an empty list. */
export const textsOrText = (what: string) =>
  z.preprocess((value) => {
    const read = typeof value === 'string' ? parsedOrText(value) : (value ?? []);
    return Array.isArray(read) ? read : typeof value === 'string' ? [value] : read;
  }, listOf(what));

/** Accepts a text that is not blank. */
export const required = (what: string) =>
  z.string({ error: `expected ${what}` }).regex(/\S/, { error: `expected ${what}` });

/** Accepts a text, and reads a missing value, null and an empty text as null. */
export const optional = (what: string) =>
  z
    .string({ error: `expected ${what}, or nothing` })
    .nullish()
    .transform((value) => (value === '' ? null : (value ?? null)));
