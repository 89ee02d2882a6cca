/** One part of a patch that `git diff` wrote without renames: the change of one file. */
export interface PatchPart {
  /**
   * Latin-1, so that every byte keeps its value. Names with blanks are in quotes where the first line alone has them: git can't tell
   * where `a/one /b b/one /b` ends.
   */
  readonly text: string;
  /** Path relative to the workspace, in latin-1. Null for parts that no capture writes, such as a rename. */
  readonly path: string | null;
  /** All names in the part: the path, or the names that a third-party patch gives its files. */
  readonly names: readonly string[];
  readonly change: 'added' | 'deleted' | 'changed';
  /** Whether the file is a symlink afterwards. */
  readonly link: boolean;
}

const opening = 'diff --git ';

/**
 * Splits a patch into its parts. Each begins with a line `diff --git`, which no content can imitate, since content lines
 * begin with a space, `+`, `-` or `\`.
 */
export function patchParts(patch: Uint8Array): readonly PatchPart[] {
  const text = Buffer.from(patch.buffer, patch.byteOffset, patch.byteLength).toString('latin1');
  const parts: PatchPart[] = [];
  let start = 0;
  while (start < text.length) {
    // Only a line feed ends a line here: a file's own carriage return is content.
    const next = text.indexOf(`\n${opening}`, start);
    const end = next === -1 ? text.length : next + 1;
    parts.push(readPart(text.slice(start, end)));
    start = end;
  }
  return parts;
}

export const joinParts = (parts: readonly PatchPart[]): Buffer =>
  Buffer.from(parts.map(({ text }) => text).join(''), 'latin1');

/** Returns the directories that a file lies in, outermost first. */
export const directoriesAbove = (name: string): readonly string[] =>
  [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index));

function readPart(text: string): PatchPart {
  const [first = '', ...lines] = headerOf(text);
  const has = (beginning: string): boolean => lines.some((line) => line.startsWith(beginning));
  const change = has('new file mode ') ? 'added' : has('deleted file mode ') ? 'deleted' : 'changed';
  const link = lines.some((line) => /^(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 120000$/.test(line));
  const foreign = has('rename ') || has('copy ') || !first.startsWith(opening);
  const path = foreign ? null : pathIn(first.slice(opening.length));
  const isUnclear = path?.includes(' ') === true && !first.startsWith(`${opening}"`) && !has('--- ');
  const clear = isUnclear ? `${opening}"a/${path}" "b/${path}"${text.slice(first.length)}` : text;
  return { text: clear, path, names: path === null ? lines.flatMap(namesIn) : [path], change, link };
}

/** Returns the lines before the first hunk, binary or not. */
export function headerOf(text: string): readonly string[] {
  const end = /\n(?:@@ |GIT binary patch\n|Binary files )/.exec(text)?.index ?? text.length;
  return text.slice(0, end).split('\n');
}

/** Reads `a/NAME b/NAME`, or both in quotes. Null if the names differ. */
function pathIn(names: string): string | null {
  if (!names.startsWith('"')) {
    const half = (names.length - 1) / 2;
    const [before, after] = [names.slice(0, half), names.slice(half + 1)];
    return names[half] === ' ' && before.slice(2) === after.slice(2) && before.startsWith('a/')
      ? before.slice(2)
      : null;
  }
  const quoted = /^"a\/((?:[^"\\]|\\.)*)" "b\/\1"$/.exec(names)?.[1];
  return quoted === undefined ? null : unquote(quoted);
}

/** Returns the name in a header line, in latin-1. The program `patch` uses these if they differ from the part's first line. */
export function namesIn(line: string): readonly string[] {
  const [, prefixed, plain] = /^(?:(?:---|\+\+\+) (.*?)\t?|(?:rename|copy) (?:from|to) (.*))$/.exec(line) ?? [];
  const name = prefixed ?? plain;
  if (name === undefined || name === '/dev/null') return [];
  const bare = name.startsWith('"') ? unquote(name.slice(1, -1)) : name;
  return [prefixed === undefined ? bare : bare.slice(bare.indexOf('/') + 1)];
}

const escapes: Readonly<Record<string, string>> = { a: '\x07', b: '\b', t: '\t', n: '\n', v: '\v', f: '\f', r: '\r' };

/** Reads a name that git quoted like a C string, with octal escapes for everything but plain ASCII. */
const unquote = (quoted: string): string =>
  quoted.replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (escapes[code] ?? code),
  );
