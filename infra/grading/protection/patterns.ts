/*
 * Patterns of paths, as in a `.gitignore`: `name` and `*.ext` match at any depth, `dir/` everything below directories of this
 * name; a pattern with a `/` at the beginning or inside is relative to the workspace; `**` crosses directories, `\` precedes
 * a literal character. A pattern that matches a directory matches everything below it. The last of several matching patterns
 * decides; one with a `!` revokes the earlier ones, also below a directory.
 *
 * Not picomatch: it gives brackets and braces a meaning, and the names here are arbitrary bytes, in latin-1.
 */

/** Returns a function that says whether these patterns match a path, which is in latin-1. */
export function matcher(patterns: readonly string[]): (path: string) => boolean {
  const rules = patterns.map((pattern) => ({
    matches: !pattern.startsWith('!'),
    expression: expressionOf(pattern.replace(/^!/, '')),
  }));
  return (path) => rules.findLast(({ expression }) => expression.test(path))?.matches ?? false;
}

/** Returns the pattern that matches this path alone, whatever characters it contains. */
export const escapePattern = (path: string): string => `/${path.replaceAll(/[\\*?]/g, '\\$&')}`;

function expressionOf(pattern: string): RegExp {
  const bytes = Buffer.from(pattern).toString('latin1');
  const directory = bytes.endsWith('/');
  const body = bytes.replace(/^\//, '').replace(/\/$/, '');
  const anchored = bytes.startsWith('/') || body.includes('/');
  const parts = (anchored ? body : `**/${body}`).split(/(?<=^|\/)\*\*\//);
  return new RegExp(`^${sourceOf(parts)}${directory ? '/' : '(?:/|$)'}`, 's');
}

/**
 * Returns the source for parts between which any directories may lie. A part but the last one takes the first place that it
 * fits, and keeps it: a later place would leave less for the rest, and trying all of them takes seconds for a deep path.
 */
function sourceOf([first = '', ...others]: readonly string[]): string {
  const last = others.length - 1;
  const sources = others.map((part, index) => {
    const next = `${anyDirectories}${sourceOfPart(part)}`;
    // A part with a wildcard over directories may end at several places.
    return index === last || part.includes('**') ? next : `(?=(?<part${index}>${next}))\\k<part${index}>`;
  });
  return sourceOfPart(first) + sources.join('');
}

const anyDirectories = '(?:[^/]*/)*?';

const sourceOfPart = (part: string): string =>
  part.replaceAll(/\\(.)|\*\*\/|\*\*|\*|\?|[^\\*?]/gs, (sign, escaped?: string) =>
    escaped === undefined ? (wildcards[sign] ?? literal(sign)) : literal(escaped),
  );

const wildcards: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' };

const literal = (sign: string): string => sign.replace(/[$()*+.?[\\\]^{|}]/, '\\$&');
