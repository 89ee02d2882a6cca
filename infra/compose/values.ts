import { literalValue, writeHostValue } from './host-value.ts';
import { wholeUse } from './variables.ts';

/** Makes the failure for a field that a sandbox cannot provide. */
export type Reject = (field: string, expected: string, got: string) => Error;

/** Replaces the variables in the text of a field. */
export type Fill = (text: string, field: string) => string;

/** The rules by which the fields of one service are read. */
export interface Reading {
  readonly fill: Fill;
  readonly reject: Reject;
  /** Whether the harness sets a variable. All other variables are the host's. */
  readonly isOwn: (variable: string) => boolean;
}

/** Rejects a table with keys other than the known ones. */
export function requireOnly(
  table: Readonly<Record<string, unknown>> | null | undefined,
  field: string,
  known: readonly string[],
  reject: Reject,
): void {
  const other = Object.keys(table ?? {}).find((key) => !known.includes(key));
  if (other !== undefined) throw reject(`${field}.${other}`, `only the keys ${known.join(', ')}`, other);
}

/** Returns the words of a command as Compose splits a text: by spaces, with quotes. */
export function splitWords(text: string): readonly string[] {
  const found = text.matchAll(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+/gs);
  return [...found].map(([word]) =>
    word.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/gs, (_, double?: string, single?: string, escaped?: string) =>
      double === undefined ? (single ?? escaped ?? '') : double.replaceAll(/\\(["\\$`])/g, '$1'),
    ),
  );
}

/** Returns variables as pairs; null stands for the value of the host's variable of that name. */
export function pairsOf(
  environment: readonly string[] | Readonly<Record<string, string | number | boolean | null>>,
): readonly (readonly [string, string | null])[] {
  if (!Array.isArray(environment)) {
    return Object.entries(environment).map(([key, value]) => [key, value === null ? null : String(value)]);
  }
  return environment.map((line: string) => {
    const at = line.indexOf('=');
    return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
  });
}

/**
 * Reads the variables of a service. A value that is a whole variable of the host is kept in Harbor's form, because the operator
 * decides whether the task may have it.
 */
export function variablesOf(
  environment: Parameters<typeof pairsOf>[0],
  reading: Reading,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairsOf(environment).map(([key, value]) => {
      const field = `environment.${key}`;
      return [key, value === null ? hostVariable(key) : textOf(value, field, reading)];
    }),
  );
}

const hostVariable = (name: string): string => writeHostValue({ name, fallback: undefined });

function textOf(value: string, field: string, { fill, isOwn, reject }: Reading): string {
  const use = wholeUse(value, (expected, got) => reject(field, expected, got));
  if (use === null || isOwn(use.name) || use.operator.endsWith('+')) return literalValue(fill(value, field));
  return writeHostValue({
    name: use.name,
    fallback: use.operator.endsWith('-') ? fill(use.word, field) : undefined,
  });
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 1 / 1_000 };

/** Returns the milliseconds of a duration such as `1m30s` or `500ms`. */
export function millisecondsIn(value: string | number, field: string, { fill, reject }: Reading): number {
  const text = fill(String(value), field).trim();
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|us|s)/g)];
  const isWhole = parts.length > 0 && parts.map(([part]) => part).join('') === text;
  const total = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (unitMs[unit ?? ''] ?? 0), 0);
  if (!isWhole || total > 3_600_000) throw reject(field, 'a duration such as "1m30s" of at most an hour', text);
  return Math.ceil(total);
}
