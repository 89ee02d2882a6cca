import { z } from 'zod';
import { type FailureType, TemperFailure } from '../../../workflows/contracts/failures.ts';
import { describeIssue } from '../../../workflows/contracts/input.ts';

/** Where a row is: its number counts from 1, its position is what its file finds it by. */
export interface RowPlace {
  readonly number: number;
  readonly position: number;
}

export interface Row extends RowPlace {
  readonly file: string;
  /** Throws TemperFailure MalformedTask when the file has no value there. */
  read(): unknown;
}

/** A file of rows, read forwards or one by one; never as a whole where its format allows that. */
export interface RowFile {
  rows(): AsyncIterable<Row>;
  at(place: RowPlace): Promise<Row>;
}

/** A row by its schema. Throws TemperFailure MalformedTask naming file, row, field, expected and got. */
export function parseRow<Schema extends z.ZodType>(schema: Schema, row: Row): z.output<Schema> {
  const value = row.read();
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, value));
  throw rowFailure('MalformedTask', row, problems.join('; '));
}

export const rowFailure = (type: FailureType, { file, number }: Pick<Row, 'file' | 'number'>, text: string) =>
  new TemperFailure(type, `${file}: row ${number}: ${text}`);

/** A value that may come as JSON inside a string: Parquet files often have lists and objects so. */
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

/** A list of texts, or one as JSON text. */
export const textList = (what: string) => maybeJson(listOf(what));

/** As `textList`, where one text alone is a list of one, and none an empty list. */
export const textsOrText = (what: string) =>
  z.preprocess((value) => {
    const read = typeof value === 'string' ? parsedOrText(value) : (value ?? []);
    return Array.isArray(read) ? read : typeof value === 'string' ? [value] : read;
  }, listOf(what));

export const required = (what: string) =>
  z.string({ error: `expected ${what}` }).regex(/\S/, { error: `expected ${what}` });

/** Absent, null and empty are the same: nothing. */
export const optional = (what: string) =>
  z
    .string({ error: `expected ${what}, or nothing` })
    .nullish()
    .transform((value) => (value === '' ? null : (value ?? null)));
