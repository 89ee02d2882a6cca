import type { FileTree } from '../sandbox/files.ts';

/**
 * Applies `.dockerignore` as Docker's client does; the daemon expects a filtered context. Own code instead of
 * `@balena/dockerignore`, which matches with backtracking regular expressions: one hostile pattern of a task would block the
 * process for hours, and a pattern with `+` or `(` is misread or throws.
 */

const ignoreFile = '.dockerignore';
/** Files that the builder needs, even if they are ignored. It excludes ignored ones from `COPY` itself. */
const alwaysSent: readonly string[] = [ignoreFile, 'Dockerfile'];

interface Rule {
  readonly segments: readonly string[];
  /** Whether the rule includes files that earlier rules exclude. */
  readonly includes: boolean;
}

/**
 * Returns a context without ignored files, apart from those that must be sent. The last rule that matches a file, or a directory
 * above it, decides.
 */
export function withoutIgnored(files: FileTree, sent: readonly string[] = alwaysSent): FileTree {
  const source = files.get(ignoreFile);
  if (source === undefined) return files;
  const rules = parseRules(new TextDecoder().decode(source.bytes));
  return new Map([...files].filter(([path]) => sent.includes(path) || !isIgnored(path, rules)));
}

/**
 * Returns a context whose rules are those of its Dockerfile if this has a file of its own for them, as BuildKit reads it. What the
 * daemon's builder then reads in its place is in no image.
 */
export function withOwnRules(files: FileTree, dockerfile: string): FileTree {
  const own = files.get(`${dockerfile}${ignoreFile}`);
  if (own === undefined) return files;
  const bytes = Buffer.from(`${new TextDecoder().decode(own.bytes)}\n${ignoreFile}\n`);
  return new Map([...files, [ignoreFile, { ...own, bytes }]]);
}

function parseRules(text: string): readonly Rule[] {
  return text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '' && line !== '!')
    .map((line) => {
      const includes = line.startsWith('!');
      return { includes, segments: cleanSegments(includes ? line.slice(1).trim() : line) };
    });
}

/** Splits a pattern and resolves `.`, `..` and empty segments. All patterns start at the root of the context. */
function cleanSegments(pattern: string): readonly string[] {
  const kept: string[] = [];
  for (const segment of pattern.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return kept;
}

function isIgnored(path: string, rules: readonly Rule[]): boolean {
  const segments = path.split('/');
  let ignored = false;
  for (const { includes, segments: pattern } of rules) {
    if (ignored === includes && matchesPrefix(pattern, segments)) ignored = !includes;
  }
  return ignored;
}

/** Whether the pattern matches the path or a directory above it. */
function matchesPrefix(pattern: readonly string[], path: readonly string[]): boolean {
  // The set of pattern positions that may come next. The number of steps is bounded by the lengths of pattern and path.
  let open = skipDoubleStars(pattern, new Set([0]));
  for (const segment of path) {
    const next = new Set<number>();
    for (const at of open) {
      const part = pattern[at];
      if (part === '**') next.add(at);
      else if (part !== undefined && matchesSegment(part, segment)) next.add(at + 1);
    }
    open = skipDoubleStars(pattern, next);
    if (open.has(pattern.length)) return pattern.length > 0;
  }
  return false;
}

/** Adds the positions after each `**`, which also matches no directory at all. */
function skipDoubleStars(pattern: readonly string[], open: Set<number>): ReadonlySet<number> {
  for (const at of open) if (pattern[at] === '**') open.add(at + 1);
  return open;
}

/** Matches `*`, `?`, `[a-z]` and `\\` within a name. It backtracks only to the last star, so that no pattern is slow. */
function matchesSegment(pattern: string, name: string): boolean {
  const tokens = pattern.match(/\\.|\[\^?(?:\\.|[^\]\\])+\]|[\s\S]/gu) ?? [];
  const characters = [...name];
  let at = 0;
  let token = 0;
  let star: { readonly token: number; at: number } | null = null;
  while (at < characters.length) {
    if (tokens[token] === '*') {
      star = { token, at };
      token += 1;
    } else if (token < tokens.length && matchesCharacter(tokens[token] ?? '', characters[at] ?? '')) {
      token += 1;
      at += 1;
    } else if (star !== null) {
      star.at += 1;
      at = star.at;
      token = star.token + 1;
    } else return false;
  }
  return tokens.slice(token).every((rest) => rest === '*');
}

function matchesCharacter(token: string, character: string): boolean {
  if (token === '?') return true;
  if (token.startsWith('\\')) return token.slice(1) === character;
  if (token.length < 3 || !token.startsWith('[')) return token === character;
  const inverted = token[1] === '^';
  const parts = token.slice(inverted ? 2 : 1, -1).match(/(?:\\.|[^\\])(?:-(?:\\.|[^\\]))?/gsu) ?? [];
  const found = parts.some((part) => {
    const [first = '', last = first] = part.match(/\\.|[^\\]/gsu)?.filter((_, index) => index !== 1) ?? [];
    return unescaped(first) <= character && character <= unescaped(last);
  });
  return found !== inverted;
}

const unescaped = (text: string): string => text.replace(/^\\(?=.)/s, '');
