/** Reads `.dockerignore` as the builder's clients do: the daemon leaves that to the client that sends the context. */
import type { FileTree } from '../../sandbox/files.ts';

const ignoreFile = '.dockerignore';
/** The builder needs them; it keeps those that are left out from `COPY` itself. */
const alwaysSent: readonly string[] = [ignoreFile, 'Dockerfile'];

interface Rule {
  readonly segments: readonly string[];
  /** Takes back what earlier rules leave out. */
  readonly keeps: boolean;
}

/** A context without what its `.dockerignore` leaves out. The last rule that matches a file, or a directory above it, decides. */
export function withoutIgnored(files: FileTree): FileTree {
  const source = files.get(ignoreFile);
  if (source === undefined) return files;
  const rules = rulesIn(new TextDecoder().decode(source.bytes));
  return new Map([...files].filter(([path]) => alwaysSent.includes(path) || !isIgnored(path, rules)));
}

function rulesIn(text: string): readonly Rule[] {
  return text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '' && line !== '!')
    .map((line) => {
      const keeps = line.startsWith('!');
      return { keeps, segments: cleaned(keeps ? line.slice(1).trim() : line) };
    });
}

/** Removes `.`, `..` and empty parts: all patterns start at the context's root. */
function cleaned(pattern: string): readonly string[] {
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
  for (const { keeps, segments: pattern } of rules) {
    if (ignored === keeps && matchesHead(pattern, segments)) ignored = !keeps;
  }
  return ignored;
}

/** Does the pattern match the path, or a directory above it? */
function matchesHead(pattern: readonly string[], path: readonly string[]): boolean {
  // Which parts of the pattern may be matched so far: as many steps as both are long, whatever they hold.
  let open = withStars(pattern, new Set([0]));
  for (const segment of path) {
    const next = new Set<number>();
    for (const at of open) {
      const part = pattern[at];
      if (part === '**') next.add(at);
      else if (part !== undefined && matchesSegment(part, segment)) next.add(at + 1);
    }
    open = withStars(pattern, next);
    if (open.has(pattern.length)) return pattern.length > 0;
  }
  return false;
}

/** `**` stands for no directory too. */
function withStars(pattern: readonly string[], open: Set<number>): ReadonlySet<number> {
  for (const at of open) if (pattern[at] === '**') open.add(at + 1);
  return open;
}

/** `*`, `?`, `[a-z]` and `\\` within a name. Goes back to the last star alone: no pattern takes long. */
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
