import { stripVTControlCharacters } from 'node:util';

/** The longest line that can report a test. Some tests print much longer lines. */
const longestLine = 64 * 1024;
/** The beginnings of escape sequences: the two-character form, and the one-character form. */
const escapes: readonly string[] = ['\u001b', '\u009b'];
/** Begins a sequence without a fixed end. Node searches the rest of the line for each one, so their number is limited. */
const operatingSystemCommand = '\u001b]';
const mostCommands = 64;

/**
 * Yields the lines of a log without colours and line ends. A line that is too long to report a test is yielded empty.
 * Only a line feed ends a line: a carriage return inside a line is text that a terminal would overwrite.
 */
export function* linesOf(log: string): Generator<string> {
  for (let from = 0; from <= log.length; ) {
    const feed = log.indexOf('\n', from);
    const end = feed === -1 ? log.length : feed;
    yield cleaned(log.slice(from, end));
    from = end + 1;
  }
}

function cleaned(raw: string): string {
  if (raw.length > longestLine) return '';
  const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
  if (!escapes.some((start) => line.includes(start))) return line;
  if (line.split(operatingSystemCommand).length > mostCommands) return '';
  return stripVTControlCharacters(line).replace(/\r$/, '');
}

/** Returns the text of a heading such as `==== text ====`, or `= text =` when it is long; null if the line is not a heading. */
export function headingIn(line: string, mark: string): string | null {
  let start = 0;
  let end = line.length;
  while (line[start] === mark) start += 1;
  while (end > start && line[end - 1] === mark) end -= 1;
  const framed = start > 0 && end < line.length && line[start] === ' ' && line[end - 1] === ' ';
  return framed ? line.slice(start, end).trim() : null;
}

/** Returns the number of characters by which a line is indented. */
export const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Removes the duration from a title such as `adds (3 ms)`. */
export const withoutDuration = (title: string): string => title.replace(/ \(\d+(?:\.\d+)? ?m?s\)$/, '');

/** Returns the number of blanks that stand before a position. */
export function blanksBefore(line: string, at: number): number {
  let start = at;
  while (start > 0 && line[start - 1] === ' ') start -= 1;
  return at - start;
}

/**
 * Returns a line from a mark on, with the indentation of the mark, which is even. A test's output without a line end stands
 * before it, and may end with a blank.
 */
export function fromMark(line: string, mark: RegExp): string {
  const at = line.search(mark);
  return at === -1 ? '' : fromPosition(line, at);
}

export function fromPosition(line: string, at: number): string {
  const blanks = blanksBefore(line, at);
  return line.slice(at - blanks + (blanks === at ? 0 : blanks % 2));
}

/** The longest text in parentheses at the end of a title that is looked at. */
const longestNote = 64;

/** Removes the text in parentheses at the end of a title if it has a form, such as that of an amount. */
export function withoutNote(title: string, form: RegExp): string {
  const at = title.lastIndexOf(' (');
  return at !== -1 && title.length - at <= longestNote && form.test(title.slice(at)) ? title.slice(0, at) : title;
}
