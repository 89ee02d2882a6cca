import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { FileEntry, FileTree } from '../sandbox/file-tree.ts';
import { type Instruction, instructions, rejected } from './dockerfile-instructions.ts';
import { likeBuildKit } from './like-buildkit.ts';

/*
 * Dockerfiles for a builder without here-documents.
 *
 * Images are built through the daemon's own API, whose builder would read the lines of a here-document as instructions. So
 * each is replaced by what every builder reads the same: the script of a RUN becomes text in that RUN, which leaves no file in
 * the image, and the file of a COPY comes from the context. Mounts of caches and links of layers, which only save time, go.
 */

/** A Dockerfile without here-documents, and the files that its context needs for that. */
export interface PlainDockerfile {
  readonly source: string;
  readonly files: FileTree;
  /** The scripts of its commands, which the source has in another form. */
  readonly scripts: readonly string[];
}

/** The directory of the context with the files of here-documents. */
const directory = '.temper-here';
/** The longest line; the builder reads at most 65,535 bytes of one. */
const lineLength = 60_000;
/** The longest script of a RUN, which is one argument of a shell: Linux allows 131,072 bytes. */
const longestScript = 90_000;

interface HereDocument {
  readonly delimiter: string;
  readonly text: string;
  /** Whether the builder replaces variables in it. */
  readonly expands: boolean;
}

/** One instruction with the lines that belong to it, or a line without an instruction. */
interface Block {
  readonly instruction: Instruction | null;
  /** The lines of the instruction, without those of its here-documents. */
  readonly own: readonly string[];
  /** The same lines, with those of its here-documents. */
  readonly lines: readonly string[];
  readonly markers: readonly Marker[];
  readonly documents: readonly HereDocument[];
}

/** Instructions in which here-documents may stand. */
const withDocuments = ['RUN', 'COPY', 'ADD'];

/** Splits a Dockerfile into its instructions, with their here-documents. Throws MalformedTask for one that never ends. */
export function blocksOf(source: string): readonly Block[] {
  const lines = source.split(/\r?\n/);
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    const start = at;
    const { instruction, length } = nextInstruction(lines, at);
    at += length;
    const own = lines.slice(start, at);
    const isDocumented = instruction !== null && withDocuments.includes(instruction.keyword);
    const markers = isDocumented ? markersOf(flagsOf(instruction.rest).rest) : [];
    const documents = markers.map(({ dash, delimiter, expands }) => {
      let end = at;
      while (end < lines.length && unindented(lines[end] ?? '', dash) !== delimiter) end += 1;
      if (end === lines.length) throw unterminated(delimiter);
      const text = lines.slice(at, end).map((line) => `${unindented(line, dash)}\n`);
      at = end + 1;
      return { delimiter, expands, text: text.join('') };
    });
    blocks.push({ instruction, own, lines: lines.slice(start, at), markers, documents });
  }
  return blocks;
}

/** Rewrites a Dockerfile. One without here-documents and such options is returned as it is. Throws MalformedTask, or UnsupportedTask. */
export function plainDockerfile(source: string): PlainDockerfile {
  const files = new Map<string, FileEntry>();
  // Lists of lines: a call takes some 120,000 arguments at most.
  const written: (readonly string[])[] = [];
  const scripts: string[] = [];
  let isChanged = false;
  for (const { instruction, own, markers, documents } of blocksOf(source)) {
    if (instruction === null || !withDocuments.includes(instruction.keyword)) {
      written.push(own);
      continue;
    }
    const { flags, rest } = withoutShortcuts(instruction.rest);
    if (documents.length === 0) {
      isChanged ||= flags !== null;
      written.push(flags === null ? own : [`${instruction.keyword} ${flags}${rest}`]);
      continue;
    }
    isChanged = true;
    const kept = flags ?? flagsOf(instruction.rest).flags;
    if (instruction.keyword === 'RUN') {
      const script = scriptOf(rest, markers, documents);
      scripts.push(script);
      written.push([`RUN ${kept}${commandOf(script)}`]);
    } else {
      const { keyword, line } = instruction;
      written.push([copyOf({ keyword, flags: kept, rest, line }, documents, files)]);
    }
  }
  return { source: likeBuildKit(isChanged ? written.flat().join('\n') : source), files, scripts };
}

/** Reads the instruction that begins at a line, with its continued lines; null for a line without one. */
function nextInstruction(lines: readonly string[], at: number): { instruction: Instruction | null; length: number } {
  if (/^\s*(#|$)/.test(lines[at] ?? '')) return { instruction: null, length: 1 };
  for (let length = 1; at + length <= lines.length; length++) {
    const last = lines[at + length - 1] ?? '';
    const goesOn = /\\[ \t]*$/.test(last) || (length > 1 && /^\s*(#|$)/.test(last));
    if (goesOn && at + length < lines.length) continue;
    const [instruction = null] = instructions(lines.slice(at, at + length).join('\n'));
    return { instruction, length };
  }
  return { instruction: null, length: 1 };
}

/** A quote that is never closed is a character like any other. No text matches in two ways, which could take for ever. */
const flag = /^--[\w-]+(?:=(?:"[^"]*"|'[^']*'|[^\s"']|"(?![^"]*")|'(?![^']*'))*)?\s+/;

/** Splits the options of an instruction from what they are for. */
export function flagsOf(text: string): { readonly flags: string; readonly rest: string } {
  let rest = text;
  for (let [found] = flag.exec(rest) ?? []; found !== undefined; [found] = flag.exec(rest) ?? []) {
    rest = rest.slice(found.length);
  }
  return { flags: text.slice(0, text.length - rest.length), rest };
}

/** Splits flags off and drops those that only save time. The flags are null if all stay. */
function withoutShortcuts(text: string): { readonly flags: string | null; readonly rest: string } {
  const { flags, rest } = flagsOf(text);
  const kept = flags.replaceAll(/--(?:mount=type=(?:cache|tmpfs)\S*|link(?:=true)?)\s+/g, '');
  return { flags: kept === flags ? null : kept, rest };
}

interface Marker {
  readonly at: number;
  readonly length: number;
  readonly dash: boolean;
  readonly delimiter: string;
  readonly expands: boolean;
}

const marker = /^\d*<<(-?)(?:"([^"\s]+)"|'([^'\s]+)'|([A-Za-z_][\w.-]*))(?=[\s;&|)>]|$)/;

/** Finds the marks of here-documents that begin a word outside of quotes. */
function markersOf(text: string): readonly Marker[] {
  const found: Marker[] = [];
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (character === '\\') at++;
    else if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (at === 0 || /[\s;&|(]/.test(text[at - 1] ?? '')) {
      const [whole, dash, double, single, plain] = marker.exec(text.slice(at)) ?? [];
      if (whole === undefined) continue;
      const delimiter = double ?? single ?? plain ?? '';
      found.push({ at, length: whole.length, dash: dash === '-', delimiter, expands: plain !== undefined });
      at += whole.length - 1;
    }
  }
  return found;
}

const unindented = (line: string, dash: boolean): string => (dash ? line.replace(/^\t+/, '') : line);

/** Returns the script that a here-document alone is, or the command line that reads here-documents. */
function scriptOf(rest: string, [first]: readonly Marker[], documents: readonly HereDocument[]): string {
  if (first !== undefined && rest.trim().length === first.length) return documents[0]?.text ?? '';
  return `${rest}\n${documents.map(({ text, delimiter }) => `${text}${delimiter}\n`).join('')}`;
}

/** Returns a command that runs a script and holds its text. */
function commandOf(script: string): string {
  const coded = Buffer.from(script).toString('base64');
  if (coded.length > longestScript) {
    throw rejected(`a here-document of at most ${(longestScript / 4) * 3} bytes`, `${script.length} bytes`);
  }
  const text = (coded.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? []).join('\\\n');
  const decoded = `printf %s '${text}' | base64 -d`;
  // An image without base64 must fail the build, and not run nothing.
  if (!script.startsWith('#!')) return `here=$(${decoded}) && eval "$here"`;
  return `here=$(mktemp) && ${decoded} >"$here" && chmod 700 "$here" && "$here"; code=$?; rm -f "$here"; exit $code`;
}

interface Copy {
  readonly keyword: string;
  readonly flags: string;
  readonly rest: string;
  readonly line: string;
}

/** Returns the COPY of files that hold the here-documents, and adds these to the context. */
function copyOf(
  { keyword, flags, rest, line }: Copy,
  documents: readonly HereDocument[],
  files: Map<string, FileEntry>,
): string {
  const words = rest.split(/\s+/);
  const others = words.slice(0, -1).filter((word) => !word.includes('<<'));
  const open = documents.find(({ expands, text }) => expands && text.includes('$'));
  if (open !== undefined) {
    throw rejected(`quotes around the name of a here-document with a $ (<<'${open.delimiter}')`, line);
  }
  const paths = documents.map(({ delimiter, text }) => {
    const path = `${directory}/${files.size}/${delimiter}`;
    files.set(path, { mode: 0o644, bytes: Buffer.from(text) });
    return path;
  });
  return `${keyword} ${flags}${[...paths, ...others, words.at(-1) ?? ''].join(' ')}`;
}

const unterminated = (delimiter: string): TemperFailure =>
  new TemperFailure(
    'MalformedTask',
    `environment/Dockerfile: expected a line ${delimiter} at the end of a here-document, got none`,
  );
