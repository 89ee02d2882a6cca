import type { HostValue } from './host-value.ts';
import { substitute, wholeUse } from './variables.ts';

/** A value in a file of variables: its text, or a variable of the host as a whole. */
export type EnvValue = string | HostValue;

interface EnvFileRules {
  /** The values that the harness substitutes. Those of earlier lines come after them. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whether each value is the rest of its line, as it is (`format: raw`). */
  readonly isRaw: boolean;
  /** Makes the failure for a line. Its value, which may be a password, is not in it. */
  readonly refuse: (expected: string, got: string) => Error;
}

/** The most variables of a file, each of which may name all those before it. */
const mostVariables = 2_000;
const name = /[\w.[\]-]+/y;
const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '\\': '\\' };

/**
 * Reads a file of variables by the rules of the Compose specification: `NAME=value` or `NAME: value`, in quotes or not, after
 * `export` or not; `NAME` alone stands for the host's variable.
 */
export function readEnvFile(text: string, rules: EnvFileRules): readonly (readonly [string, EnvValue])[] {
  const source = text.replace(/^\uFEFF/, '').replaceAll(/\r\n?/g, '\n');
  return rules.isRaw ? readRaw(source, rules) : readQuoted(source, rules);
}

function readRaw(source: string, { refuse }: EnvFileRules): readonly (readonly [string, EnvValue])[] {
  return source.split('\n').flatMap((line, index): readonly (readonly [string, EnvValue])[] => {
    const written = line.trimStart();
    if (written === '' || written.startsWith('#')) return [];
    const [, key = '', value] = /^([^=\s]+)(?:=(.*))?$/s.exec(written) ?? [];
    if (key === '') throw refuse('lines such as NAME=value', `another one in line ${index + 1}`);
    return [[key, value ?? ofHost(key)]];
  });
}

const ofHost = (key: string): HostValue => ({ name: key, fallback: undefined });

function readQuoted(source: string, { variables, refuse }: EnvFileRules): readonly (readonly [string, EnvValue])[] {
  const found = new Map<string, EnvValue>();
  for (let at = nextStatement(source, 0); at < source.length; at = nextStatement(source, at)) {
    const rejection = (expected: string, got: string): Error =>
      refuse(expected, `${got} in line ${source.slice(0, at).split('\n').length}`);
    if (found.size >= mostVariables) throw rejection(`at most ${mostVariables} variables`, 'another one');
    const begin = at + (/^export[ \t]+/.exec(source.slice(at, at + 64))?.[0].length ?? 0);
    name.lastIndex = begin;
    const [key] = name.exec(source) ?? [];
    if (key === undefined) throw rejection('lines such as NAME=value', 'another one');
    const [before, sign] = /^[ \t]*([=:]?)/.exec(source.slice(begin + key.length)) ?? ['', ''];
    const start = begin + key.length + before.length;
    const earlier = Object.fromEntries(
      [...found].flatMap(([one, value]) => (typeof value === 'string' ? [[one, value]] : [])),
    );
    const fill = (text: string): EnvValue =>
      filled(text, { ...earlier, ...variables }, (expected, got) => rejection(`${expected} in ${key}`, got));
    if (sign === '') {
      if (!/^(?:\n|$|#)/.test(source.slice(start))) throw rejection(`= after ${key}`, 'something else');
      found.set(key, ofHost(key));
      at = start;
      continue;
    }
    const { value, end } = valueAt(source, start, fill);
    if (value === null) throw rejection(`a closing quote of ${key}`, 'none');
    found.set(key, value);
    at = end;
  }
  return [...found];
}

/** Returns the position of the next statement, after blank lines and comments. */
function nextStatement(source: string, from: number): number {
  const [skipped = ''] = /^(?:\s+|#[^\n]*)*/.exec(source.slice(from)) ?? [];
  return from + skipped.length;
}

/** Reads a value, and where it ends; null for one whose quote is never closed. */
function valueAt(source: string, start: number, fill: (text: string) => EnvValue) {
  const from = start + (/^[^\S\n]*/.exec(source.slice(start))?.[0].length ?? 0);
  const quote = source[from];
  if (quote !== '"' && quote !== "'") {
    const end = source.indexOf('\n', from);
    const line = source.slice(from, end === -1 ? undefined : end);
    const [text = ''] = line.startsWith('#') && from > start ? [] : line.split(' #', 1);
    return { value: fill(text.trimEnd()), end: from + line.length };
  }
  const [whole, inner = ''] =
    (quote === '"' ? /^"((?:\\.|[^"\\])*)"/s : /^'((?:\\.|[^'\\])*)'/s).exec(source.slice(from)) ?? [];
  if (whole === undefined) return { value: null, end: from };
  const value = quote === "'" ? inner.replaceAll("\\'", "'") : fill(inner.replaceAll(/\\(.)/gs, unescaped));
  return { value, end: from + whole.length };
}

/** An escaped dollar sign is doubled, so that it stays one. */
const unescaped = (written: string, sign: string): string =>
  sign === '"' ? sign : sign === '$' ? '$$' : (escapes[sign] ?? written);

function filled(
  text: string,
  variables: Readonly<Record<string, string>>,
  refuse: (expected: string, got: string) => Error,
): EnvValue {
  const use = wholeUse(text, refuse);
  const isOwn = use === null || Object.hasOwn(variables, use.name) || use.operator.endsWith('+');
  if (isOwn) return substitute(text, { variables, refuse });
  const fallback = use.operator.endsWith('-') ? substitute(use.word, { variables, refuse }) : undefined;
  return { name: use.name, fallback };
}
