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

/**
 * Returns a function that says whether these patterns name a path as a directory above what they match: `a/b` names `a`. A link
 * there could lead to files that the patterns would match below it, but do not where they really are.
 */
export function matcherAbove(patterns: readonly string[]): (path: string) => boolean {
  const rules = patterns.map((pattern) => {
    const revokes = pattern.startsWith('!');
    return { matches: !revokes, expressions: revokes ? [expressionOf(pattern.slice(1))] : expressionsAbove(pattern) };
  });
  return (path) => rules.findLast((rule) => rule.expressions.some((one) => one.test(path)))?.matches ?? false;
}

/** Returns the pattern that matches this path alone, whatever characters it contains. */
export const escapePattern = (path: string): string => `/${path.replaceAll(/[\\*?]/g, '\\$&')}`;

function expressionOf(pattern: string): RegExp {
  const bytes = Buffer.from(pattern).toString('latin1');
  const directory = bytes.endsWith('/');
  const body = bodyOf(bytes);
  const anchored = bytes.startsWith('/') || body.includes('/');
  return new RegExp(`^${sourceOf(anchored ? body : `**/${body}`)}${directory ? '/' : '(?:/|$)'}`, 's');
}

/** Returns expressions for the directories that a pattern names. A leading `**` names none: the rest matches anywhere. */
function expressionsAbove(pattern: string): readonly RegExp[] {
  const names = bodyOf(Buffer.from(pattern).toString('latin1')).split('/');
  const above = names.slice(0, -1).map((_, index) => names.slice(0, index + 1));
  const naming = above.filter((some) => some.some((name) => name !== '**'));
  return naming.map((some) => new RegExp(`^${sourceOf(some.join('/'))}$`, 's'));
}

const bodyOf = (bytes: string): string => bytes.replace(/^\//, '').replace(/\/$/, '');

/**
 * Returns the source for a pattern without a slash at its ends: for its parts, between which any directories may lie. A part but
 * the last one takes the first place that it fits, and keeps it: a later place would leave less for the rest, and trying all of
 * them takes seconds for a deep path.
 */
function sourceOf(body: string): string {
  const [first = '', ...others] = body.split(/(?<=^|\/)\*\*\//);
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
