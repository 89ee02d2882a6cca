/** A patch as \`git diff\` writes it without renames, in its parts: one for each file that came, went or changed. */
export interface PatchPart {
  /** Latin-1, so that every byte stays what it is. */
  readonly text: string;
  /** Relative to the workspace; latin-1. Null where the part is none that a capture writes (a rename, two names). */
  readonly path: string | null;
  /** All names in it: the path, or what a part from elsewhere calls its files. */
  readonly names: readonly string[];
  readonly change: 'added' | 'deleted' | 'changed';
  /** Is it a symlink afterwards? */
  readonly link: boolean;
}

const opening = 'diff --git ';

/** Each part begins with a line \`diff --git\`, which no content line can imitate: those begin with a space, \`+\`, \`-\` or \`\\\`. */
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

function readPart(text: string): PatchPart {
  const [first = '', ...lines] = headerOf(text);
  const has = (beginning: string): boolean => lines.some((line) => line.startsWith(beginning));
  const change = has('new file mode ') ? 'added' : has('deleted file mode ') ? 'deleted' : 'changed';
  const link = lines.some((line) => /^(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 120000$/.test(line));
  const foreign = has('rename ') || has('copy ') || !first.startsWith(opening);
  const path = foreign ? null : pathIn(first.slice(opening.length));
  return { text, path, names: path === null ? lines.flatMap(namesIn) : [path], change, link };
}

/** The lines before the first hunk, binary or not. */
export function headerOf(text: string): readonly string[] {
  const end = /\n(?:@@ |GIT binary patch\n|Binary files )/.exec(text)?.index ?? text.length;
  return text.slice(0, end).split('\n');
}

/** \`a/NAME b/NAME\`, or both in quotes. */
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

/** As a line of a header gives it, in latin-1; `patch` goes by these where they differ from the first line. */
export function namesIn(line: string): readonly string[] {
  const [, prefixed, plain] = /^(?:(?:---|\+\+\+) (.*?)\t?|(?:rename|copy) (?:from|to) (.*))$/.exec(line) ?? [];
  const name = prefixed ?? plain;
  if (name === undefined || name === '/dev/null') return [];
  const bare = name.startsWith('"') ? unquote(name.slice(1, -1)) : name;
  return [prefixed === undefined ? bare : bare.slice(bare.indexOf('/') + 1)];
}

const escapes: Readonly<Record<string, string>> = { a: '\x07', b: '\b', t: '\t', n: '\n', v: '\v', f: '\f', r: '\r' };

/** As git quotes names: like a string of C, all that is no plain ASCII in octal. */
const unquote = (quoted: string): string =>
  quoted.replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (escapes[code] ?? code),
  );
